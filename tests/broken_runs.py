"""Tables of what can be broken in a run of each edition, and what must be said of it."""

import copy
import json
from collections.abc import Callable
from typing import Any

DELETE = object()
NEW = "clueweb22-en0000-00-00000:1"  # a passage that no run lists
MANY = " ".join(["word"] * 251)
Change = tuple[str, str, Any, str]  # what, where (a path), the new value or a function of the old, what must be said


def rank(id: str, **fields: Any) -> Callable[[list[Any]], list[Any]]:
    """Append a passage to a list of them."""
    return lambda passages: [*passages, {**passages[-1], "id": id, "used": False, "score": -99.0, **fields}]


def scored(*scores: float) -> Callable[[list[Any]], list[Any]]:
    """Give the first passages of a list these scores."""
    return lambda passages: (
        [{**p, "score": s} for p, s in zip(passages, scores, strict=False)] + passages[len(scores) :]
    )


RESPONSE = "turns/0/responses/0"
PASSAGES = f"{RESPONSE}/passage_provenance"
STATEMENTS = f"{RESPONSE}/ptkb_provenance"
BOTH: list[Change] = [
    ("a turn is missing", "turns/1", DELETE, "is missing from the run"),
    ("a turn is extra", "turns/1/turn_id", "77_1", "turn 77_1 $.turns[1]: is not a turn of these topics"),
    ("a turn is there twice", "turns", lambda turns: [*turns, turns[0]], "is there already"),
    ("a turn without an id", "turns/0/turn_id", DELETE, "'turn_id' is a required property"),
    ("a turn with an empty id", "turns/0/turn_id", "", "$.turns[0].turn_id"),
    ("a turn of another kind", "turns/0", [], "$.turns[0]: [] is not of type 'object'"),
    ("an unknown field of a turn", "turns/0/score", 1, "$.turns[0]: the unknown field `score` is left out"),
    ("no turns", "turns", DELETE, "'turns' is a required property"),
    ("no responses", "turns/0/responses", [], "$.turns[0].responses"),
    ("a rank is 0", f"{RESPONSE}/rank", 0, "$.turns[0].responses[0].rank"),
    ("ranks begin at 2", f"{RESPONSE}/rank", 2, "ranks are [2]"),
    ("the text is empty", f"{RESPONSE}/text", " ", "text is empty"),
    ("the text is missing", f"{RESPONSE}/text", DELETE, "`text` is absent: the text is empty"),
    ("the text is too long", f"{RESPONSE}/text", MANY, "text has 251 words"),
    ("many tokens, few words", f"{RESPONSE}/text", "a,b," * 63, "text has 252 tokens by spaCy"),
    ("no passages", PASSAGES, [], "passages are none"),
    ("a passage twice", PASSAGES, lambda found: rank(found[0]["id"])(found), " 2 times"),
    ("equal scores", PASSAGES, scored(9.5, 9.5), ", not below "),
    ("a rising score", PASSAGES, rank(NEW, score=99999.0), "scores 99999.0, not below"),
    ("an id that is none of the collection", PASSAGES, rank("wiki:1"), "passages wiki:1 is no id of the collection"),
    ("an empty passage id", PASSAGES, rank(""), ".id: "),
    ("too many passages", PASSAGES, lambda found: found * 400, "passage_provenance"),
    ("nothing is used", PASSAGES, lambda found: [{**p, "used": False} for p in found], "has no passage marked used"),
    ("used is missing", f"{PASSAGES}/0/used", DELETE, "passage_provenance[0]: `used` is absent"),
    ("used is a word", f"{PASSAGES}/0/used", "yes", "'yes' is not of type 'boolean'"),
    ("a score is text", f"{PASSAGES}/0/score", "9", "passage_provenance[0].score: `score` is a text, read as a number"),
    ("a score is no number", f"{PASSAGES}/0/score", "high", "'high' is not of type 'number'"),
    ("a score is missing", f"{PASSAGES}/1/score", DELETE, "passage_provenance[1]: `score` is absent: the order"),
    ("no run name", "run_name", "", "$.run_name: is empty"),
    ("an unknown run type", "run_type", "magic", "'magic' is not one of"),
    ("a run name with spaces", "run_name", "our run", "$: the run's name 'our run' has spaces"),
    ("a run name of a number", "run_name", 7, "$.run_name: `run_name` is a number, read as a text"),
    ("the text is of no width", f"{RESPONSE}/text", "\u200b \ufeff", "text is empty"),
    ("the text only cites", f"{RESPONSE}/text", "[1] [2, 3]", "text is empty"),
    ("scores that are equal in 32 bits", PASSAGES, scored(2000.00001, 2000.0), ", not below "),
    ("an unknown field", "team", "x", "$: the unknown field `team` is left out"),
    ("no rank", f"{RESPONSE}/rank", DELETE, "responses[0]: `rank` is absent: the order"),
    ("a rank as text", f"{RESPONSE}/rank", "1", "`rank` is a text, read as a number"),
    ("a score of null", f"{PASSAGES}/0/score", None, "passage_provenance[0]: `score` is absent: the order"),
    ("statements of null", STATEMENTS, None, "`ptkb_provenance` is absent: no statement was chosen"),
    ("a field of a passage", f"{PASSAGES}/0/note", 1, "the unknown field `note` is left out"),
    ("a field of a response", f"{RESPONSE}/model", "x", "the unknown field `model` is left out"),
]
OF_2024: list[Change] = [
    *BOTH,
    ("statement 0", STATEMENTS, [0], "id 0 is not in the topic's PTKB"),
    ("a statement twice", STATEMENTS, lambda ids: [ids[0], ids[0]], "lists a statement twice"),
    ("statements as texts", STATEMENTS, ["x"], "is not of type 'integer'"),
    ("no eval_response", "eval_response", DELETE, "$: `eval_response` is absent"),
    ("a statement id as text", STATEMENTS, ["1"], "ptkb_provenance[0]: `ptkb_provenance` is a text, read as a number"),
    ("a thousand and one responses", "turns/0/responses", lambda found: found * 1001, "has 1001 responses"),
    ("the run type of 2025", "run_type", "generation-only", "'generation-only' is not one of"),
]
OF_2023: list[Change] = [
    *BOTH,
    ("statement 99", f"{STATEMENTS}/0/id", "99", "id 99 is not in the topic's PTKB"),
    ("a statement's text is another's", f"{STATEMENTS}/0/text", "I am Napoleon.", "is no statement of the topic's"),
    ("a statement twice", STATEMENTS, lambda found: [found[0], found[0]], "lists a statement twice"),
    ("a statement without a score", f"{STATEMENTS}/0/score", DELETE, "ptkb_provenance[0]: `score` is absent"),
    ("a statement id that is a number", f"{STATEMENTS}/0/id", 1, "`id` is a number, read as a text"),
    (
        "statements out of order",
        STATEMENTS,
        lambda found: [{**found[0], "score": 0.0}, {**found[0], "id": "2", "score": 1.0}],
        "is not ordered by score",
    ),
    ("the run type of 2024", "run_type", "only_response", "'only_response' is not one of"),
    ("the field of 2024", "eval_response", True, "the unknown field `eval_response`"),
]
LINE = "0/responses/0"
OF_2025: list[Change] = [
    ("a turn is missing", "1", DELETE, "is missing from the run"),
    ("a turn is extra", "1/turn_id", "77-7_1", "turn 77-7_1 line 2 $: is not a turn of these topics"),
    ("a turn is there twice", "", lambda lines: [*lines, lines[0]], "is there already"),
    ("a line that is no object", "0", 5, "line 1 $: 5 is not of type 'object'"),
    ("no turn id", "0/turn_id", DELETE, "'turn_id' is a required property"),
    ("a turn id that is a number", "0/turn_id", 9, "line 1 $.turn_id: `turn_id` is a number, read as a text"),
    ("no metadata", "0/metadata", DELETE, "'metadata' is a required property"),
    ("an empty run id", "0/metadata/run_id", "", "$.metadata.run_id: is empty"),
    ("the run type of 2024", "0/metadata/run_type", "only_response", "'only_response' is not one of"),
    ("another run's line", "1/metadata/run_id", "theirs", "metadata differ from those of line 1"),
    ("references as a list", "0/references", ["a:1"], "['a:1'] is not of type 'object'"),
    ("no references", "0/references", {}, "passages are none"),
    ("references are missing", "0/references", DELETE, "'references' is a required property"),
    ("a score is text", "0/references", lambda all: {**all, NEW: "9"}, "`references` is a text, read as"),
    ("equal scores", "0/references", lambda found: dict.fromkeys(found, 1.0), "scores 1.0, not below"),
    ("a rising score", "0/references", lambda found: {**found, NEW: 99999.0}, "not below"),
    ("too many references", "0/references", lambda _: {f"a:{n}": -n for n in range(1001)}, "line 1 $.references"),
    ("an id that is none of the collection", "0/references", {"wiki:1": 9.0}, "wiki:1 is no id"),
    ("no responses", "0/responses", [], "line 1 $.responses: text is empty"),
    ("the text is empty", f"{LINE}/text", "", "text is empty"),
    ("the text is missing", f"{LINE}/text", DELETE, "'text' is a required property"),
    ("a text that the official fixer deletes", f"{LINE}/text", MANY, "the official fixer deletes 1 of 1"),
    (
        "too long together",
        "0/responses",
        lambda all: [{**all[0], "text": MANY[:650]}] * 2,
        "the responses have 260 words",
    ),
    ("no citations field", f"{LINE}/citations", DELETE, "`citations` is absent: nothing is cited"),
    ("citations as a list", f"{LINE}/citations", ["a:1"], "['a:1'] is not of type 'object'"),
    ("nothing is cited", f"{LINE}/citations", {}, "has no passage marked used, or cited"),
    ("a citation that is not listed", f"{LINE}/citations", {"rock:9": 1.0}, "rock:9 is not among the references"),
    ("no statements field", f"{LINE}/ptkb_provenance", DELETE, "`ptkb_provenance` is absent"),
    ("a statement of somebody else", f"{LINE}/ptkb_provenance", ["I am Napoleon."], "is no statement of the topic's"),
    ("a statement twice", f"{LINE}/ptkb_provenance", lambda texts: [texts[0], texts[0]], "lists a statement twice"),
    ("statements as ids", f"{LINE}/ptkb_provenance", [1], "1 is not of type 'string'"),
    ("a rank", f"{LINE}/rank", 1, "line 1 $.responses[0]: the unknown field `rank` is left out"),
    ("a field of a line", "0/model", "x", "line 1 $: the unknown field `model` is left out"),
    ("of the metadata", "0/metadata/type", "x", "line 1 $.metadata: the unknown field `type` is left out"),
    ("a run id of a number", "0/metadata/run_id", 7, "`run_id` is a number, read as a text"),
]
OF_QRECC: list[Change] = [
    ("a turn is missing", "1", DELETE, "is missing from the run"),
    ("a turn is extra", "1/Turn_no", 77, "_77 $[1]: is not a turn of these topics"),
    ("another conversation", "1/Conversation_no", 777, "turn 777_"),
    ("a turn is there twice", "", lambda rows: [*rows, rows[0]], "is there already"),
    ("no rows", "", [], "is missing from the run"),
    ("an object instead of rows", "", {"turns": []}, "is not of type 'array'"),
    ("a row that is no object", "0", "row", "$[0]: 'row' is not of type 'object'"),
    ("no conversation", "0/Conversation_no", DELETE, "'Conversation_no' is a required property"),
    ("a conversation as text", "0/Conversation_no", "1", "`Conversation_no` is a text, read as a number"),
    ("a turn as text", "0/Turn_no", "1", "$[0].Turn_no: `Turn_no` is a text, read as a number"),
    ("half a turn", "0/Turn_no", 1.5, "$[0].Turn_no: 1.5 is not of type 'integer'"),
    ("turn 0", "0/Turn_no", 0, "$[0].Turn_no: 0 is less than the minimum of 1"),
    ("conversation -1", "0/Conversation_no", -1, "$[0].Conversation_no: -1 is less than the minimum of 0"),
    ("a rewrite that is a number", "0/Model_rewrite", 5, "$[0].Model_rewrite: 5 is not of type 'string'"),
    ("no turn", "0/Turn_no", DELETE, "'Turn_no' is a required property"),
    ("an answer that is null", "0/Model_answer", None, "$[0].Model_answer: None is not of type 'string'"),
    ("passages as a list", "0/Model_passages", ["a:1"], "$[0].Model_passages: ['a:1'] is not of type 'object'"),
    (
        "a score as text",
        "0/Model_passages",
        {"a:1": "9"},
        "$[0].Model_passages['a:1']: `Model_passages` is a text, read",
    ),
    ("a score that is null", "0/Model_passages", {"a:1": None}, "is not of type 'number'"),
    ("an empty passage id", "0/Model_passages", {"": 1.0}, "$[0].Model_passages"),
    ("equal scores", "0/Model_passages", {"a:1": 1.0, "a:2": 1.0}, "a:2 scores 1.0, not below a:1"),
    ("a rising score", "0/Model_passages", {"a:1": 1.0, "a:2": 2.0}, "a:2 scores 2.0, not below a:1"),
    ("an id that is none of the collection", "0/Model_passages", {"wiki:1": 1.0}, "wiki:1 is no id of the collection"),
    ("the question in the run", "0/Question", "Why?", "the unknown field `Question` is left out"),
    ("a label in the run", "0/Truth_answer", "", "the unknown field `Truth_answer` is left out"),
]
TABLES: dict[str, list[Change]] = {
    "ikat-2023": OF_2023,
    "ikat-2024": OF_2024,
    "ikat-2025": OF_2025,
    "qrecc": OF_QRECC,
}


def changed(document: Any, path: str, value: Any) -> Any:
    """The document with what is at the path replaced, or deleted."""
    whole = {"": copy.deepcopy(document)}
    *steps, last = ["", *path.split("/")] if path else [""]
    target: Any = whole
    for step in steps:
        target = target[int(step) if isinstance(target, list) else step]
    key = int(last) if isinstance(target, list) else last
    if value is DELETE:
        del target[key]
    else:
        target[key] = value(target[key]) if callable(value) else value
    return whole[""]


def decoded(edition: str, data: bytes) -> Any:
    return [json.loads(line) for line in data.splitlines()] if edition == "ikat-2025" else json.loads(data)


def encoded(edition: str, run: Any) -> bytes:
    if edition == "ikat-2025" and isinstance(run, list):
        return "\n".join(map(json.dumps, run)).encode()
    return json.dumps(run).encode()


def is_odd(message: str) -> bool:
    """Whether what is broken so is read all the same."""
    return any(words in message for words in ("is left out", "read as a", "is absent"))
