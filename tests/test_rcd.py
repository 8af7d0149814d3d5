"""RCD-2020: topics as they were released, spans found in them, passages for them, and what both are worth by hand."""

import math
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from agent.evaluation.rcd import evaluate_passages, evaluate_spans, measure_span
from agent.tasks.rcd import (
    Dialogue,
    RcdTopics,
    candidate_spans,
    find_spans,
    rank_file,
    read_spans,
    read_topics,
    write_spans,
)
from cli import app
from indexes.corpora.corpus import find_corpus
from indexes.index_builder import build_index
from indexes.passage_index import PassageIndex
from indexes.ranking.hybrid import open_retriever
from schemas.errors import InvalidInputError, UsageError
from schemas.records import Passage
from tests.conftest import examples, shared_file
from tests.test_index import PACKERS
from tests.test_topics import write

BAKER = """\
<desc>
<p>Good morning.</p>
<p> You weigh it like Marie   Curie. Is
that rye bread? </p>
<p>It is.</p>
</desc>"""


def write_top(number: int, title: str, movie: str, dialogue: str) -> str:
    return f"<top>\n<num> {number} </num>\n<title> {title}</title>\n<movie>{movie}</movie>\n{dialogue}\n</top>\n"


TRAIN = "<desc>\n<p>Where to?</p>\n<p>To Lindenau, please.</p>\n<p>Return?</p>\n</desc>"
BAKERS = (write_top(number, title, "The Baker", BAKER) for number, title in ((1, "Marie Curie"), (2, "rye bread")))
TOPICS = f"<topics>\n{''.join(BAKERS)}{write_top(3, 'Lindenau', 'The Train', TRAIN)}</topics>\n"


@pytest.fixture
def training() -> Path:
    """The released training topics, which are not part of the project."""
    return shared_file("rcd", "train_topics.xml")


@pytest.fixture
def topics(tmp_path: Path) -> Path:
    return write(tmp_path / "topics.xml", TOPICS)


def test_a_topics_file_is_read(topics: Path) -> None:
    found = read_topics(topics)
    assert found.references == {"1": "Marie Curie", "2": "rye bread", "3": "Lindenau"}
    said = ("Good morning.", "You weigh it like Marie Curie. Is that rye bread?", "It is.")
    assert found.dialogues[0] == Dialogue("1", "The Baker", said)
    assert [[topic.id for topic in group] for group in found.groups()] == [["1", "2"], ["3"]]


TOP = "<top><num>1</num><desc><p>Rye bread.</p></desc></top>"
ODD = [
    # the file, and what is read as dialogue
    (TOP.replace("Rye", "R&B & rye"), ["R&B & rye bread."]),
    (TOP.replace("Rye", "1 < 2, rye"), ["1 < 2, rye bread."]),
    (TOP.replace("top>", "TOP>").replace("p>", "P>"), ["Rye bread."]),
    (TOP.replace("Rye", "<!-- loud --><i>Rye</i>"), ["Rye bread."]),
    (TOP.replace("<p>", '<p pno="10046153-0">'), ["Rye bread."]),
    (TOP.replace(".</p>", ".<p>Yes."), ["Rye bread.", "Yes."]),
    (TOP.replace("</desc>", "").removesuffix("</top>"), ["Rye bread."]),
    (TOP.replace("</num>", "<title>Rye</title><title>b"), ["Rye bread."]),
    (TOP.replace("<p>", "").replace("</p>", ""), ["Rye bread."]),
    ("\ufeffTopics: " + TOP, ["Rye bread."]),
]


def test_what_is_no_xml_is_read_all_the_same(tmp_path: Path) -> None:
    for content, said in ODD:
        found = read_topics(write(tmp_path / "topics.xml", content))
        assert [list(dialogue.utterances) for dialogue in found.dialogues] == [said], content


BAD_TOPICS = [
    ("not XML", "Rye bread.", "holds no topic"),
    ("no topic", "<topics></topics>", "holds no topic"),
    ("no number", TOP.replace("<num>1</num>", ""), "the topic in line 1 has no number"),
    ("two words", TOP.replace("<num>1", "<num>1 b"), "topic '1 b' (line 1): its number is no single word"),
    ("twice", f"{TOP}\n{TOP}", "topic '1' (line 2): its number stands twice"),
    ("no dialogue", TOP.replace("Rye bread.", " "), "topic '1' (line 1) has no dialogue"),
    ("all at once", f"<top></top>\n{TOP}\n{TOP}", "line 1 has no dialogue\n  topic '1' (line 3): its number stands tw"),
]


BAD_SPANS = [
    ("no tab", "1 rye bread\n", "line 1 is not `num<TAB>span`"),
    ("three columns", "1\trye\tbread\n", "line 1 is not `num<TAB>span`"),
    ("twice", "1\trye\n\n1\tbread\n", "line 3: topic 1 has a span already"),
    ("unknown", "1\trye\n9\tbread\n", "line 2: there is no topic 9"),
    ("all at once", "1\n9\tbread\n", "line 1 is not `num<TAB>span`: '1'\n  line 2: there is no topic 9"),
]


@pytest.mark.parametrize(
    ("is_spans", "content", "message"),
    [(table is BAD_SPANS, *row[1:]) for table in (BAD_TOPICS, BAD_SPANS) for row in table],
)
def test_what_cannot_be_used_is_refused(
    is_spans: bool, content: str, message: str, topics: Path, tmp_path: Path
) -> None:
    path = write(tmp_path / "given", content)
    with pytest.raises(InvalidInputError) as caught:
        read_spans(path, read_topics(topics)) if is_spans else read_topics(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_spans_are_found_without_the_titles(topics: Path, tmp_path: Path) -> None:
    """Topics 1 and 2 share a dialogue: its two best spans are theirs, in the order in which they are said."""
    out, blind = tmp_path / "spans.tsv", tmp_path / "blind.tsv"
    assert write_spans(topics, out, overwrite=False) == 3
    assert out.read_text() == "1\tMarie Curie\n2\trye bread\n3\tLindenau\n"
    unmarked = "".join(line for line in TOPICS.splitlines(keepends=True) if "<title>" not in line)
    write_spans(write(tmp_path / "test.xml", unmarked), blind, overwrite=False)
    assert blind.read_text() == out.read_text()
    with pytest.raises(UsageError, match="exists already"):
        write_spans(topics, out, overwrite=False)


def test_candidates_are_runs_of_words_without_stop_words_at_the_edges() -> None:
    dialogue = Dialogue("1", "", ("I don't bake rye bread, gung-ho for the N.S.A. now.It rains.",))
    found = [span.text for span in candidate_spans(dialogue)]
    bread = ["bake", "bake rye", "bake rye bread", "rye", "rye bread", "bread"]
    assert found == [*bread, "gung-ho", "gung-ho for the N.S.A", "N.S.A", "rains"]
    assert [span.text for span in candidate_spans(Dialogue("1", "", ("It is.", "...")))] == ["It is.", "..."]


def test_a_group_larger_than_its_dialogue_is_refused() -> None:
    group = tuple(Dialogue(id, "", ("Rye bread.",)) for id in "1234")
    assert find_spans(RcdTopics(group[:3], {})) == {"1": "Rye", "2": "Rye bread", "3": "bread"}
    with pytest.raises(InvalidInputError, match="topics 1, 2, 3, 4: share a dialogue that has only 3"):
        find_spans(RcdTopics(group, {}))


def check_spans(topics: RcdTopics) -> None:
    """Every span is said by somebody, and those of a group are different and in the order of the dialogue."""
    spans = find_spans(topics)
    assert list(spans) == [dialogue.id for dialogue in topics.dialogues]
    for group in topics.groups():
        position = 0
        found = [spans[dialogue.id] for dialogue in group]
        assert len({span.lower() for span in found}) == len(group)
        assert all(any(span in utterance for utterance in group[0].utterances) for span in found)
        for span in found:
            position = group[0].text.index(span, position)


@examples(50)
@given(st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=6))
def test_any_dialogue_has_a_span(said: list[str]) -> None:
    utterances = tuple(text for line in said if (text := " ".join(line.split())))
    if utterances:
        check_spans(RcdTopics((Dialogue("1", "", utterances),), {}))


def test_spans_of_the_training_topics(training: Path, tmp_path: Path) -> None:
    """The released file, and the same as if five topics shared each dialogue.

    The rule was learned on these topics, so this is no estimate of quality (docs/tracks.md has one).
    """
    found = read_topics(training)
    assert len(found.dialogues) == len(found.references) == 25
    several = [Dialogue(f"{d.id}.{n}", d.movie, d.utterances) for d in found.dialogues for n in range(5)]
    check_spans(RcdTopics(tuple(several), {}))
    write_spans(training, tmp_path / "spans.tsv", overwrite=False)
    [scores] = evaluate_spans([tmp_path / "spans.tsv"], training)
    assert scores.mean("Jaccard") == pytest.approx(0.46, abs=0.005)


def test_passages_are_ranked_about_spans(topics: Path, tmp_path: Path, example_index: PassageIndex) -> None:
    """Those that are given, or else those that are found; titles, which are labels, change nothing."""
    retriever = open_retriever(example_index, None)
    other = write(tmp_path / "other.xml", TOPICS.replace(" Lindenau</title>", " tomatoes</title>"))
    for name, path in (("run", topics), ("relabelled", other)):
        assert rank_file(path, None, retriever, tmp_path / name, 1000, overwrite=False) == 3
    assert (tmp_path / "run").read_bytes() == (tmp_path / "relabelled").read_bytes()
    rows = [line.split() for line in (tmp_path / "run").read_text().splitlines()]
    assert {row[5] for row in rows} == {"convagent"}
    for before, after in pairwise(rows):
        if before[0] == after[0]:
            assert float(before[4]) > float(after[4])
            assert int(before[3]) + 1 == int(after[3])
    assert next(row for row in rows if row[0] == "3")[2].startswith("trip")
    spans = write(tmp_path / "spans.tsv", "1\ttomatoes\n2\trye bread\n3\tcats\n")
    rank_file(topics, spans, retriever, tmp_path / "given", 1, overwrite=False)
    found = [line.split()[2].split("-")[0] for line in (tmp_path / "given").read_text().splitlines()]
    assert found[:2] == ["garden", "bread"]
    with pytest.raises(InvalidInputError, match="few: no span for topic 1, 3"):
        rank_file(topics, write(tmp_path / "few", "2\trye\n"), retriever, tmp_path / "new", 1, overwrite=False)
    assert not (tmp_path / "new").exists()


MARKUP = """\
<doc>
<docno>10</docno>
<title>Rye bread</title>
<p pno="0">Rye bread &amp; butter,
<b>R&B</b>.</p>
<p pno=1>It keeps for a week.
<p pno="2">Here a tag was not closed.</p>
</doc>
<doc><docno> 11 </docno><p pno="34">Oats.</p></doc>
"""


@pytest.mark.parametrize("packed", PACKERS)
def test_numbered_paragraphs_are_passages(packed: str, tmp_path: Path) -> None:
    path = tmp_path / f"wiki.xml{packed}"
    path.write_bytes(PACKERS[packed](MARKUP.encode()))
    assert [(line, passage) for _, line, passage in find_corpus([path])] == [
        (4, Passage("10-0", "Rye bread & butter, R&B.", "Rye bread")),
        (6, Passage("10-1", "It keeps for a week.", "Rye bread")),
        (7, Passage("10-2", "Here a tag was not closed.", "Rye bread")),
        (9, Passage("11-34", "Oats.")),
    ]


NUMBERS = [
    # how a paragraph is numbered in document 10046153
    '<p pno="10046153-0">Rye bread.</p>',
    "<p><pno>0</pno>Rye bread.</p>",
    "<pno>10046153-0</pno><p>Rye bread.</p>",
    "<p>Rye <pno>10046153-0</pno>bread.</p>",
    '<pno>7</pno><p pno="0">Rye bread.</p>',
    "<p><pno>10046153-0<b></b>Rye bread.</p>",
]


def test_a_paragraphs_number_may_be_an_element_and_have_the_documents(tmp_path: Path) -> None:
    for paragraph in NUMBERS:
        doc = f"<doc><docno>10046153</docno><title>Rye</title>{paragraph}</doc>\n"
        path = write(tmp_path / "wiki.xml", doc + '<doc><p pno="11-3">Oats.</p></doc>')
        passages = [passage for _, _, passage in find_corpus([path])]
        assert passages == [Passage("10046153-0", "Rye bread.", "Rye"), Passage("11-3", "Oats.")], paragraph


BAD_PARAGRAPHS = [
    ("<doc><p pno='0'>Rye.</p></doc>", "wiki.xml:2: bad passage: expected <docno> before it"),
    ("<doc><docno>12</docno><p>Rye.</p></doc>", "wiki.xml:2: bad passage: expected <docno> before it, and <p pno"),
    ("<doc><docno>12</docno><p pno='0'> </p></doc>", "wiki.xml:2: passage '12-0' has no text"),
    ("<doc><docno>11</docno><p pno='34'>Rye.</p></doc>", "wiki.xml:2: the id '11-34' was seen before"),
]


def test_bad_paragraphs_stop_or_are_skipped(tmp_path: Path) -> None:
    for bad, message in BAD_PARAGRAPHS:
        path = write(tmp_path / "wiki.xml", "<doc><docno>11</docno><p pno='34'>Oats.</p></doc>\n" + bad)
        corpus, index = find_corpus([path]), tmp_path / "index"
        with pytest.raises(InvalidInputError) as caught:
            build_index(corpus, index, skip_problems=False, progress=lambda: None, overwrite=True)
        assert message in str(caught.value)
        built = build_index(corpus, index, skip_problems=True, progress=lambda: None, overwrite=True)
        assert (built.info.passages, built.info.skipped) == (1, 1)


# The measures

BLEU = [
    # reference, span, precisions of 3-, 4- and 5-grams, brevity penalty
    ("abcde", "abcdefg", (3 / 5, 2 / 4, 1 / 3), 1.0),
    ("abcdefg", "abcde", (1.0, 1.0, 1.0), math.exp(1 - 7 / 5)),
    ("aaaaa", "aaaaaaa", (3 / 5, 2 / 4, 1 / 3), 1.0),  # an n-gram counts as often as the reference has it
    ("rye bread", "the rye bread", (7 / 11, 6 / 10, 5 / 9), 1.0),
]
SPANS = [
    # reference, span, BLEU, Jaccard
    ("Fifth Amendment.", "fifth amendment", 1.0, 1.0),  # neither case nor punctuation around words counts
    ("pi", "Pi!", 1.0, 1.0),  # a length that neither has is left out
    ("pi", "pie", 0.0, 0.0),
    ("rye bread", "...", 0.0, 0.0),
    ("rye bread", "oats", 0.0, 0.0),
    ("rye bread", "bread, rye bread", None, 1.0),  # words count once
    ("the rye bread", "rye", 0.0, 1 / 3),
    ("a loaf of rye", "loaf of bread", None, 2 / 5),
]


def test_span_measures_by_hand_and_by_nltk() -> None:
    """Lengths 3, 4 and 5 weigh 3/12, 4/12 and 5/12."""
    from nltk.translate.bleu_score import sentence_bleu  # type: ignore[import-untyped]

    weights = (0, 0, 3 / 12, 4 / 12, 5 / 12)
    for reference, span, precisions, brevity in BLEU:
        found = measure_span(reference, span)["BLEU"]
        assert found == pytest.approx(brevity * math.prod(p**w for p, w in zip(precisions, weights[2:], strict=True)))
        assert found == pytest.approx(sentence_bleu([list(reference)], list(span), weights=weights))
    for reference, span, bleu, jaccard in SPANS:
        measured = measure_span(reference, span)
        assert measured["Jaccard"] == pytest.approx(jaccard), span
        assert bleu is None or measured["BLEU"] == bleu, span


def test_groups_are_judged_as_one(topics: Path, tmp_path: Path) -> None:
    """In a group it does not matter to which topic a span was given; a missing one is missing in it."""
    files = [
        write(tmp_path / "swapped", "1\trye bread\n2\tMarie Curie\n3\tLindenau\n"),
        write(tmp_path / "one", "2\trye bread\n3\tto\n"),
    ]
    swapped, one = evaluate_spans(files, topics)
    assert swapped.by_turn("Jaccard") == {"1+2": 1.0, "3": 1.0}
    assert swapped.turns["1+2"]["BLEU"] < 1
    assert one.by_turn("Jaccard") == {"1+2": 2 / 4, "3": 0.0}
    assert (swapped.missing, one.missing, one.mean("Jaccard")) == (0, 1, 0.25)
    scenes = write(tmp_path / "scenes.txt", "# of one scene\n7,2\n3 7\n")
    assert list(evaluate_spans(files, topics, scenes)[0].turns) == ["1", "2+3"]
    with pytest.raises(InvalidInputError, match="holds no topic number"):
        evaluate_spans([], topics, write(tmp_path / "empty", "# nothing\n"))
    with pytest.raises(InvalidInputError, match="no reference span: topic 1"):
        evaluate_spans([], write(tmp_path / "test.xml", TOP))


QRELS = "1\tQ0\t10-0\t1\r\n1\tQ0\t10-1\t0\r\n2\tQ0\t11-3\t2\r\n3\tQ0\t12-0\t0\r\n"
RUN = """\
1 Q0 11-3 1 3.0 ours
1 Q0 10-1 2 2.0 ours
1 Q0 10-0 3 1.0 ours
3 Q0 12-0 1 1.0 ours
"""


def test_passage_measures_by_hand(topics: Path, tmp_path: Path) -> None:
    """Alone, topic 1 has one relevant passage, in the third place; with topic 2, of its group, the first one, too.

    Topic 2 is not in the run, and topic 3 has nothing relevant.
    """
    run, qrels = write(tmp_path / "run.trec", RUN), write(tmp_path / "qrels", QRELS)
    [alone] = evaluate_passages([run], qrels, None)
    assert alone.turns == {"1": {"AP": 1 / 3, "P@5": 0.2, "RR": 1 / 3}, "2": {}}
    assert alone.missing == 1
    [grouped] = evaluate_passages([run], qrels, topics)
    assert grouped.turns == {"1": {"AP": pytest.approx((1 + 2 / 3) / 2), "P@5": 0.4, "RR": 1.0}}
    for labels, ranking, message in (
        ("9 0 a 1\n", RUN, "qrels: holds no relevant passage of these topics"),
        (QRELS, "7 Q0 a 1 1.0 x\n", "run.trec: has none of the turns that have labels: it has '7'"),
    ):
        files = write(tmp_path / "run.trec", ranking), write(tmp_path / "qrels", labels)
        with pytest.raises(InvalidInputError) as caught:
            evaluate_passages([files[0]], files[1], topics)
        assert message in str(caught.value)


def test_the_commands(topics: Path, tmp_path: Path, example_index: PassageIndex) -> None:
    """Spans, passages for them, and the measures of both."""
    spans, run = tmp_path / "spans.tsv", tmp_path / "run.trec"
    index = ["--index", str(example_index.directory), "--embedder", "none"]
    qrels = write(tmp_path / "qrels", "3 0 trip-01:0 1\n")
    steps = [
        ["spans", str(topics), "-o", str(spans)],
        ["rank", str(topics), *index, "--spans", str(spans), "-o", str(run), "-k", "5"],
        ["eval", "rcd-spans", str(spans), str(spans), "--topics", str(topics), "--json"],
        ["eval", "rcd-passages", str(run), "--qrels", str(qrels), "--topics", str(topics), "--json"],
    ]
    said = [CliRunner().invoke(app, step) for step in steps]
    assert [result.exit_code for result in said] == [0] * len(steps), [result.output for result in said]
    assert '"1+2":{"BLEU":1.0,"Jaccard":1.0}' in said[2].stdout
    assert '"mean":{"AP":' in said[3].stdout
    again = CliRunner().invoke(app, steps[0])
    assert again.exit_code == 2
    assert "Give --overwrite" in again.output
