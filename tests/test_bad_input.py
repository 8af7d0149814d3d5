"""Files that are wrong as files are wrong: each ends in an error that says what and where, or in a valid run."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from agent.runs.given_ranking import read_ranking
from agent.runs.trace import read_trace
from indexes.passage_index import PassageIndex
from tests.fuzz.bench import Ended, call, settings

BRACKETS = 100_000
TOPIC: dict[str, Any] = {
    "number": 0,
    "ptkb": {"1": "I am coeliac."},
    "turns": [{"turn_id": 1, "utterance": "Which bread may I eat?"}],
}


@pytest.fixture(autouse=True)
def _without_models() -> Iterator[None]:
    with settings():
        yield


def answered(index: PassageIndex, topics: Path, *more: object) -> Ended:
    """Answered without a model, and validated where that ended well."""
    run = topics.with_name("out.json")
    ended = call("answer", topics, "-i", index.directory, "-k", "5", "-o", run, *more)
    return call("validate", run, "-t", topics) if ended.code == 0 else ended


def written(path: Path, content: Any) -> Path:
    """A file of text, of bytes, or of anything as JSON."""
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def with_utterance(text: str) -> list[Any]:
    return [TOPIC | {"turns": [{"turn_id": 1, "utterance": text}]}]


NESTED = "[" * BRACKETS
BAD_TOPICS = {
    "nothing": ("", "is not JSON"),
    "null": ("null", "is of no edition"),
    "a list of nothing": ("[[], {}, null]", "is of no edition"),
    "brackets": (NESTED + "]" * BRACKETS, "is not JSON (is nested too deeply)"),
    "brackets in a topic": (json.dumps([TOPIC | {"title": "@"}]).replace('"@"', "[" * 900 + "]" * 900), "$[0].title"),
    "UTF-16": (json.dumps([TOPIC]).encode("utf-16"), "is not UTF-8"),
    "Latin-1": (
        json.dumps(with_utterance("Wo gibt es Brötchen?"), ensure_ascii=False).encode("latin-1"),
        "is not UTF-8",
    ),
    "NUL": (b"\0" + json.dumps([TOPIC]).encode(), "is not UTF-8"),
    "NUL within": (json.dumps([TOPIC]).encode().replace(b"bread", b"br\0ad"), "is not JSON"),
    "a high surrogate": (json.dumps(with_utterance("bread \ud800 rolls")), "surrogate"),
    "NaN": (json.dumps([TOPIC]).replace('"turn_id": 1', '"turn_id": NaN'), "is not JSON"),
    "a huge number": (json.dumps([TOPIC]).replace('"turn_id": 1', '"turn_id": ' + "9" * 5000), "is not JSON"),
    "true as a text": ([TOPIC | {"ptkb": {"1": True}}], "$[0].ptkb"),
    "null as a text": ([TOPIC | {"turns": [{"turn_id": 1, "utterance": None}]}], "$[0].turns[0].utterance"),
}


def test_bad_topics_are_named(example_index: PassageIndex, tmp_path: Path) -> None:
    for case, (content, said) in BAD_TOPICS.items():
        topics = written(tmp_path / "topics.json", content)
        ended = answered(example_index, topics)
        assert (ended.code, ended.crash, said in ended.err) == (5, "", True), (case, ended.err)
        assert "topics.json" in ended.err or "turn " in ended.err, case
        assert len(ended.err) < 3000, case
        assert [path.name for path in tmp_path.iterdir()] == ["topics.json"], case


GOOD_UTTERANCES = {
    "emoji": "Which bread 🍞 may I eat 👩‍👩‍👧‍👦 on a balcony?",
    "right to left": "איזה לחם מותר לי לאכול? bread خبز",
    "marks of direction": "Which \u202ebread\u202c may \u2067I\u2069 eat?",
    "escape codes": "Which \x1b[31mbread\x07 may I eat?",
    "NUL, escaped": "Which bread\x00 may I eat?",
    "separators": "Which bread\u2028may\u0085I\x0beat?",
    "markup of the terminal": "Which bread [/x] may I [bold] eat?",
    "templates and markers": "{{ bread }} {% for x in y %} <|im_end|> which bread?",
}


@pytest.mark.parametrize("case", GOOD_UTTERANCES)
def test_odd_text_goes_from_end_to_end(case: str, example_index: PassageIndex, tmp_path: Path) -> None:
    text = GOOD_UTTERANCES[case]
    topics = written(tmp_path / "topics.json", with_utterance(text))
    assert answered(example_index, topics).out.endswith(": valid (1 turn)\n")
    trace = read_trace(tmp_path / "out.trace.jsonl")
    assert [line.answered.query.utterance for line in trace.lines()] == [text]
    shown = call("show", trace.path)
    assert shown.code == 0, shown.crash or shown.err
    assert "\x1b" not in shown.out
    exported = call("export", trace.path, "--format", "ikat-2024", "-o", tmp_path / "again.json")
    assert exported.code == 0
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "out.json").read_bytes()


def test_a_byte_order_mark_is_no_part_of_a_file(example_index: PassageIndex, tmp_path: Path) -> None:
    marked = b"\xef\xbb\xbf"
    topics = written(tmp_path / "topics.json", marked + json.dumps([TOPIC]).encode())
    assert answered(example_index, topics).code == 0
    run = written(tmp_path / "run.json", marked + (tmp_path / "out.json").read_bytes())
    assert call("validate", run, "-t", topics).code == 0
    assert call("export", run, "--format", "trec", "-o", tmp_path / "run.trec").code == 0
    trec = written(tmp_path / "marked.trec", marked + (tmp_path / "run.trec").read_bytes())
    assert read_ranking(trec).hits == read_ranking(run).hits
    first = next(iter(read_ranking(run).hits["0_1"])).id
    qrels = written(tmp_path / "qrels", marked + f"0_1 0 {first} 1\n".encode())
    assert '"RR":1.0' in call("eval", "search", trec, "--qrels", qrels, "--json").out


BAD_PASSAGES = {
    "empty.jsonl": (b"", "holds no passage"),
    "object.jsonl": (b"{}", "object.jsonl:1: bad line"),
    "nested.jsonl": (NESTED.encode(), "nested.jsonl:1: bad line"),
    "within.jsonl": (b'{"id": "a", "text": "b", "x": ' + NESTED.encode(), "within.jsonl:1: bad line"),
    "surrogate.jsonl": (b'{"id": "a", "text": "\\ud800 and more"}', "surrogate.jsonl:1: bad line"),
    "boolean.jsonl": (b'{"id": true, "text": "a"}', "boolean.jsonl:1: bad line"),
    "null.jsonl": (b'{"id": "a", "text": null}', "null.jsonl:1: bad line"),
    "utf16.jsonl": ('{"id": "a", "text": "b"}'.encode("utf-16"), "utf16.jsonl: is not UTF-8"),
    "utf16.xml": ("<doc><docno>1</docno>".encode("utf-16"), "utf16.xml: is not UTF-8"),
    "twice.tsv": (b"a\tone\na\ttwo\n", "twice.tsv:2: the id 'a' was seen before"),
    "id.tsv": (b"a" * 70_000 + b"\tone\n", "id.tsv:1: an id of 70000 characters"),
    "cut.jsonl.gz": (gzip.compress(b'{"id": "a", "text": "b"}\n')[:-9], "cut.jsonl.gz: cannot be read"),
    "plain.jsonl.gz": (b'{"id": "a", "text": "b"}', "plain.jsonl.gz: cannot be read"),
    "deflate.jsonl.gz": (gzip.compress(b"")[:10] + b"\xff" * 40, "deflate.jsonl.gz: cannot be read"),
    "unclosed.xml": (b'<doc><docno>1</docno><p pno="' + b"x\n" * 20_000, "does not end"),
    "comment.xml": (b"<doc><docno>1</docno><!-- " + b"x\n" * 20_000, "does not end"),
    "tags.xml": (b"<doc" * 2_000_000, "does not end"),
    "tape.tar.gz": (b"", "Archives (.tar, .zip) are not unpacked"),
    "parcel.zip": (b"", "Archives (.tar, .zip) are not unpacked"),
}


def test_bad_passages_are_named_and_no_index_is_left(tmp_path: Path) -> None:
    for name, (content, said) in BAD_PASSAGES.items():
        ended = call("index", "build", written(tmp_path / name, content), "-o", tmp_path / "index")
        assert (ended.code, ended.crash, said in ended.err) == (5, "", True), (name, ended.err)
        assert len(ended.err) < 1500, name
        assert [path.name for path in tmp_path.iterdir()] == [name]
        (tmp_path / name).unlink()


def test_a_small_archive_of_one_endless_line_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexes.corpora.corpus.MAX_LINE_BYTES", 1_000_000)
    packed = written(tmp_path / "bomb.jsonl.zst", zstandard.compress(b"\n" + b"x" * 50_000_000))
    ended = call("index", "build", packed, "-o", tmp_path / "index")
    assert (ended.code, ended.crash) == (5, "")
    assert "bomb.jsonl.zst:2: a line of more than 1000000 bytes" in ended.err


LOL = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
BAD_XML = {
    "billion laughs": f'<!DOCTYPE x [<!ENTITY l0 "lol">{LOL}]><topics><topic><title>&l9;</title></topic></topics>',
    "an outer entity": '<!DOCTYPE x [<!ENTITY l9 SYSTEM "file:///etc/passwd">]><topics><title>&l9;</title></topics>',
    "an unknown encoding": '<?xml version="1.0" encoding="no-such"?><topics/>',
    "unclosed": "<topics><topic><number>1</number>",
    "nothing": "",
}


def ask_touche(folder: Path) -> Ended:
    return call("touche", "--input", folder, "-o", folder / "out")


def test_bad_xml_is_named(tmp_path: Path) -> None:
    written(tmp_path / "portal.json", {"arguments": [{"id": "a", "premises": [{"text": "Bread."}]}]})
    for case, content in BAD_XML.items():
        written(tmp_path / "topics.xml", content)
        ended = ask_touche(tmp_path)
        assert (ended.code, ended.crash) == (5, ""), case
        assert "topics.xml: is no XML that can be read" in ended.err, case
        assert not (tmp_path / "out").exists(), case


def test_arguments_that_would_end_the_process_are_named(tmp_path: Path) -> None:
    """The C library under `ijson` crashes on the first two."""
    written(tmp_path / "topics.xml", "<topics><topic><number>1</number><title>Bread?</title></topic></topics>")
    for row in ("[" * BRACKETS + "]" * BRACKETS, "9" * 5000, '"\\udc00 alone"'):
        written(tmp_path / "portal.json", f'{{"arguments": [{{"id": "b", "premises": {row}}}]}}')
        ended = ask_touche(tmp_path)
        assert (ended.code, ended.crash) == (5, "")
        assert "portal.json:" in ended.err
        assert "broken JSON" in ended.err
        assert not (tmp_path / "out" / "run.txt").exists()


@pytest.mark.parametrize(
    "odd", [{"turn_id": "0_1 and more"}, {"id": "a b"}, {"id": "a\nb"}, {"twice": True}, {"listed": 2}]
)
def test_a_run_that_has_no_form_in_trec(odd: dict[str, Any], tmp_path: Path) -> None:
    passage = {"id": odd.get("id", "a"), "score": 1.0, "used": True, "text": ""}
    response = {
        "rank": 1,
        "text": "Bread.",
        "ptkb_provenance": [],
        "passage_provenance": [passage] * odd.get("listed", 1),
    }
    turn = {"turn_id": odd.get("turn_id", "0_1"), "responses": [response]}
    run = {"run_name": "x", "run_type": "automatic", "turns": [turn] * (2 if "twice" in odd else 1)}
    ended = call("export", written(tmp_path / "run.json", run), "--format", "trec", "-o", tmp_path / "run.trec")
    assert (ended.code, ended.crash) == (5, "")
    assert "run.json: " in ended.err
    assert not (tmp_path / "run.trec").exists()
