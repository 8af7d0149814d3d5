"""RCD-2020: topics as they were released, spans found in them, passages for them, and what both are worth."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from agent.tasks.rcd.measures import evaluate_spans
from agent.tasks.rcd.spans import SpanSource, candidate_spans, find_spans, rank_file, read_spans, write_spans
from agent.tasks.rcd.topics import Dialogue, RcdTopics, read_topics
from cli import app
from indexes.corpora.corpus import find_corpus
from indexes.index_builder import build_index
from indexes.passage_index import PassageIndex
from indexes.ranking.hybrid import open_retriever
from schemas.errors import ConvagentError, InvalidInputError, UsageError
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
    assert found.odd == ()
    assert found.references == {"1": "Marie Curie", "2": "rye bread", "3": "Lindenau"}
    said = ("Good morning.", "You weigh it like Marie Curie. Is that rye bread?", "It is.")
    assert found.dialogues[0] == Dialogue("1", "The Baker", said)
    assert [[topic.id for topic in group] for group in found.groups()] == [["1", "2"], ["3"]]


TOP = "<top><num>1</num><desc><p>Rye bread.</p></desc></top>"
ODD = [
    # what, the file, what is read as dialogue, what must be said
    ("a bare &", TOP.replace("Rye", "R&B & rye"), ["R&B & rye bread."], None),
    ("a bare <", TOP.replace("Rye", "1 < 2, rye"), ["1 < 2, rye bread."], None),
    ("capital tags", TOP.replace("top>", "TOP>").replace("p>", "P>"), ["Rye bread."], None),
    ("a comment", TOP.replace("Rye", "<!-- loud -->Rye"), ["Rye bread."], None),
    ("a numbered <p>", TOP.replace("<p>", '<p pno="10046153-0">'), ["Rye bread."], None),
    ("<p> not closed", TOP.replace(".</p>", ".<p>Yes."), ["Rye bread.", "Yes."], "topic 1: <p> is not closed"),
    ("the last <p> not closed", TOP.replace(".</p>", "."), ["Rye bread."], "topic 1: <p> is not closed"),
    ("<desc> not closed", TOP.replace("</desc>", ""), ["Rye bread."], None),
    ("<top> not closed", TOP.removesuffix("</top>"), ["Rye bread."], "topic 1: <top> is not closed"),
    ("<num> not closed", TOP.replace("</num>", ""), ["Rye bread."], "topic 1: <num> is not closed"),
    ("an unknown tag", TOP.replace("Rye", "<i>Rye</i>"), ["Rye bread."], "topic 1: the tag <i> is not known"),
    ("no <p>", TOP.replace("<p>", "").replace("</p>", ""), ["Rye bread."], "topic 1: text outside of <p> is taken"),
    ("text around", "Topics: " + TOP, ["Rye bread."], "file: text outside of all fields is left out: 'Topics:'"),
    ("a second title", TOP.replace("<desc>", "<title>Rye</title><title>b</title><desc>"), ["Rye bread."], "further <t"),
    ("a title not said", TOP.replace("<desc>", "<title>oats</title><desc>"), ["Rye bread."], "'oats' does not stand"),
    ("an open title", TOP.replace("<desc>", "<title>Rye<desc>"), ["Rye bread."], "topic 1: <title> is not closed"),
    ("a control sign", TOP.replace("Rye", "R\u0002ye\u200b"), ["Rye bread."], "cannot be seen are left out"),
    ("a lost character", TOP.replace("Rye", "Rye\ufffd"), ["Rye\ufffd bread."], "lost before (U+FFFD)"),
    ("Windows-1252", TOP.replace("Rye", "“Rye”").encode("cp1252"), ["“Rye” bread."], "file: is not UTF-8"),
    ("a byte order mark", TOP.encode("utf-8-sig"), ["Rye bread."], None),
]


@pytest.mark.parametrize(("content", "said", "odd"), [row[1:] for row in ODD], ids=[row[0] for row in ODD])
def test_what_can_be_read_is_read_and_what_is_odd_is_told(
    content: str | bytes, said: list[str], odd: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "topics.xml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    found = read_topics(path)
    assert list(found.dialogues[0].utterances) == said
    told = "\n".join(map(str, found.odd))
    assert (odd in told) if odd else told == ""


BAD_TOPICS = [
    ("not XML", "Rye bread.", "is not XML"),
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
    assert write_spans(topics, out, overwrite=False) == (3, ())
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
    assert find_spans(RcdTopics(group[:3], {}, ())) == {"1": "Rye", "2": "Rye bread", "3": "bread"}
    with pytest.raises(InvalidInputError, match="topics 1, 2, 3, 4: share a dialogue that has only 3"):
        find_spans(RcdTopics(group, {}, ()))


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
        check_spans(RcdTopics((Dialogue("1", "", utterances),), {}, ()))


@pytest.mark.parametrize("together", [1, 2, 5])
def test_spans_of_the_training_topics(together: int, training: Path) -> None:
    """The released file, and the same as if several topics shared each dialogue."""
    found = read_topics(training)
    assert len(found.dialogues) == len(found.references) == 25
    assert found.odd == ()
    several = [Dialogue(f"{d.id}.{n}", d.movie, d.utterances) for d in found.dialogues for n in range(together)]
    check_spans(RcdTopics(tuple(several), {}, ()))


def test_the_rule_finds_what_it_is_known_to_find(training: Path, tmp_path: Path) -> None:
    """Learned on these topics, so this is no estimate of quality (docs/tracks.md has one): a change is noticed."""
    write_spans(training, tmp_path / "spans.tsv", overwrite=False)
    [scores] = evaluate_spans([tmp_path / "spans.tsv"], training)
    assert scores.mean("Jaccard") == pytest.approx(0.46, abs=0.005)


@pytest.mark.parametrize("reference", [False, True])
def test_titles_are_searched_with_only_if_asked(
    reference: bool, topics: Path, tmp_path: Path, example_index: PassageIndex
) -> None:
    """Titles that say something else change the run exactly where they are asked for."""
    retriever = open_retriever(example_index, None)
    other = write(tmp_path / "other.xml", TOPICS.replace(" Lindenau</title>", " tomatoes</title>"))
    runs = []
    for name, path in (("run", topics), ("other", other)):
        rank_file(path, SpanSource(reference=reference), retriever, tmp_path / name, 1000, overwrite=False)
        runs.append((tmp_path / name).read_text())
    assert (runs[0] != runs[1]) is reference
    rows = [line.split() for line in runs[0].splitlines()]
    assert {row[5] for row in rows} == {"convagent-reference" if reference else "convagent"}
    for before, after in pairwise(rows):
        if before[0] == after[0]:
            assert float(before[4]) > float(after[4])
            assert int(before[3]) + 1 == int(after[3])
    assert next(row for row in rows if row[0] == "3")[2].startswith("trip")


def test_given_spans_are_searched_with(topics: Path, tmp_path: Path, example_index: PassageIndex) -> None:
    retriever, out = open_retriever(example_index, None), tmp_path / "run"
    spans = write(tmp_path / "spans.tsv", "1\ttomatoes\n2\trye bread\n3\tcats\n")
    assert rank_file(topics, SpanSource(spans), retriever, out, 1, overwrite=False)[0] == 3
    assert [line.split()[2].split("-")[0] for line in out.read_text().splitlines()][:2] == ["garden", "bread"]
    wrong: list[tuple[SpanSource, type[ConvagentError], str]] = [
        (SpanSource(spans, reference=True), UsageError, "exclude each other"),
        (SpanSource(write(tmp_path / "few", "2\trye\n")), InvalidInputError, "few: no span for topic 1, 3"),
    ]
    for given_spans, error, message in wrong:
        with pytest.raises(error, match=message):
            rank_file(topics, given_spans, retriever, tmp_path / "new", 1, overwrite=False)
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
    '<p pno="0"><pno>7</pno>Rye bread.</p>',
    "<p><pno>10046153-0<b></b>Rye bread.</p>",
]


@pytest.mark.parametrize("paragraph", NUMBERS)
def test_a_paragraphs_number_may_be_an_element_and_have_the_documents(paragraph: str, tmp_path: Path) -> None:
    doc = f"<doc><docno>10046153</docno><title>Rye</title>{paragraph}</doc>\n"
    path = write(tmp_path / "wiki.xml", doc + '<doc><p pno="11-3">Oats.</p></doc>')
    passages = [passage for _, _, passage in find_corpus([path])]
    assert passages == [Passage("10046153-0", "Rye bread.", "Rye"), Passage("11-3", "Oats.")]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("<doc><p pno='0'>Rye.</p></doc>", "wiki.xml:2: bad passage: expected <docno> before it"),
        ("<doc><docno>12</docno><p>Rye.</p></doc>", "wiki.xml:2: bad passage: expected <docno> before it, and <p pno"),
        ("<doc><docno>12</docno><p pno='0'> </p></doc>", "wiki.xml:2: passage '12-0' has no text"),
        ("<doc><docno>11</docno><p pno='34'>Rye.</p></doc>", "wiki.xml:2: the id '11-34' was seen before"),
    ],
)
def test_bad_paragraphs_stop_or_are_skipped(bad: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "wiki.xml", "<doc><docno>11</docno><p pno='34'>Oats.</p></doc>\n" + bad)
    corpus = find_corpus([path])
    with pytest.raises(InvalidInputError) as caught:
        build_index(corpus, tmp_path / "index", skip_problems=False, progress=lambda: None)
    assert message in str(caught.value)
    built = build_index(corpus, tmp_path / "index", skip_problems=True, progress=lambda: None)
    assert (built.info.passages, built.info.skipped) == (1, 1)


def test_the_commands(topics: Path, tmp_path: Path, example_index: PassageIndex) -> None:
    """Spans, passages for them, and the measures of both."""
    spans, run = tmp_path / "spans.tsv", tmp_path / "run.trec"
    index = ["--index", str(example_index.directory), "--embedder", "none"]
    qrels = write(tmp_path / "qrels", "3 0 trip-01:0 1\n")
    steps = [
        ["spans", str(topics), "-o", str(spans)],
        ["rank", str(topics), *index, "--spans", str(spans), "-o", str(run), "-k", "5"],
        ["eval", "rcd-spans", str(spans), str(spans), "--topics", str(topics), "--per-turn"],
        ["eval", "rcd-passages", str(run), "--qrels", str(qrels), "--topics", str(topics), "--json"],
    ]
    said = [CliRunner().invoke(app, step) for step in steps]
    assert [result.exit_code for result in said] == [0] * len(steps), [result.output for result in said]
    assert "1+2\t1.0000  1.0000  1.0000  1.0000\n" in said[2].stdout
    assert '"mean":{"AP":' in said[3].stdout
    again = CliRunner().invoke(app, steps[0])
    assert again.exit_code == 2
    assert "Give --overwrite" in again.output
