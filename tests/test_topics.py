"""Topics in: every edition detected and read; labels apart from what a run sees."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.tracks.files import read_topics
from schemas.errors import InvalidInputError
from schemas.records import Message, Statement

IKAT_2023: list[dict[str, Any]] = [
    {
        "number": "9-1",
        "title": "Bread",
        "ptkb": {"1": "I have coeliac disease.", "2": "I play the trumpet."},
        "turns": [
            {
                "turn_id": 1,
                "utterance": "Which bread can I eat?",
                "resolved_utterance": "Which bread can I eat with coeliac disease?",
                "response": "Rice bread.",
                "ptkb_provenance": [1],
                "response_provenance": ["bread:1"],
            },
            {"turn_id": 2, "utterance": "How long does it keep?", "response": "Two days."},
        ],
    }
]
IKAT_2024 = [{**IKAT_2023[0], "number": 0}]
IKAT_2025 = [
    {
        "number": "9-1",
        "title": "Bread",
        "ptkb": ["I have coeliac disease.", "I play the trumpet."],
        "responses": [
            {
                "turn_id": 1,
                "user_utterance": "Which bread can I eat?",
                "resolved_utterance": "Which bread can I eat with coeliac disease?",
                "response": "Rice bread.",
                "relevant_ptkbs": ["I have coeliac disease."],
                "citations": ["bread:1"],
            },
            {"turn_id": 2, "user_utterance": "How long does it keep?", "response": "Two days."},
        ],
    }
]
QRECC: list[dict[str, Any]] = [
    {"Conversation_no": 1, "Turn_no": 1, "Context": [], "Question": "Which bread can I eat?"},
    {
        "Conversation_no": 1,
        "Turn_no": 2,
        "Context": ["Which bread can I eat?", "Rice bread."],
        "Question": "How long does it keep?",
    },
]
IKAT = {
    "ikat-2023": IKAT_2023,
    "ikat-2024": IKAT_2024,
    "ikat-2025": IKAT_2025,
}
EDITIONS = IKAT | {"qrecc": QRECC}


def write(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.mark.parametrize("edition", IKAT)
def test_all_editions_read_alike(edition: str, tmp_path: Path) -> None:
    topics = read_topics(write(tmp_path / "topics.json", EDITIONS[edition]))
    number = "0" if edition == "ikat-2024" else "9-1"
    first, second = topics.topics[0].turns
    assert topics.edition == edition
    assert topics.turn_ids() == [f"{number}_1", f"{number}_2"]
    assert topics.topics[0].ptkb == (Statement("1", "I have coeliac disease."), Statement("2", "I play the trumpet."))
    assert first.history == ()
    assert second.history == (Message("user", "Which bread can I eat?"), Message("assistant", "Rice bread."))
    labels = topics.labels[first.id]
    assert (labels.statement_ids, labels.passage_ids) == (("1",), ("bread:1",))
    assert labels.human_rewrite == "Which bread can I eat with coeliac disease?"
    assert topics.labels[second.id].reply == "Two days."


def test_the_history_is_our_own_from_where_a_reply_is_missing(tmp_path: Path) -> None:
    topics = json.loads(json.dumps(IKAT_2023))
    del topics[0]["turns"][0]["response"]
    first, second = read_topics(write(tmp_path / "topics.json", topics)).topics[0].turns
    assert first.history == ()
    assert second.history is None


def test_rows_of_one_conversation_are_a_topic(tmp_path: Path) -> None:
    other = {"Conversation_no": 2, "Turn_no": 1, "Question": "And rye?"}
    unsaid = {"Conversation_no": 2, "Turn_no": 2, "Question": "Why?", "Truth_rewrite": "Why not rye?"}
    topics = read_topics(write(tmp_path / "topics.json", [QRECC[0], other, QRECC[1], unsaid]))
    assert topics.edition == "qrecc"
    assert topics.turn_ids() == ["1_1", "1_2", "2_1", "2_2"]
    history = [turn.history for topic in topics.topics for turn in topic.turns]
    assert history == [
        (),
        (Message("user", "Which bread can I eat?"), Message("assistant", "Rice bread.")),
        (),
        None,  # no context is given: our own answers are the history
    ]
    assert topics.labels["2_2"].human_rewrite == "Why not rye?"


def changed(base: list[dict[str, Any]], **fields: Any) -> list[dict[str, Any]]:
    """The topics with fields of the first topic replaced, or dropped where the value is ..."""
    topic = {key: value for key, value in {**base[0], **fields}.items() if value is not ...}
    return [topic]


def turn(**fields: Any) -> dict[str, Any]:
    return {"turn_id": 1, "utterance": "Which bread?", **fields}


BAD = [
    # what, the file, what the message must say
    ("no PTKB", changed(IKAT_2023, ptkb=...), "$[0]: 'ptkb' is a required property"),
    ("PTKB as a list in 2023", changed(IKAT_2023, ptkb=["I sing."]), "$[0].ptkb"),
    ("empty utterance", changed(IKAT_2023, turns=[turn(utterance="")]), "$[0].turns[0].utterance: is empty"),
    ("no turns", changed(IKAT_2024, turns=[]), "$[0].turns"),
    ("turn id that is no number", changed(IKAT_2024, turns=[turn(turn_id="a")]), "$[0].turns[0].turn_id"),
    ("turn id twice", changed(IKAT_2024, turns=[turn(), turn()]), "turn 0_1: stands 2 times"),
    ("topic twice", IKAT_2024 * 2, "topic 0: stands 2 times"),
    ("a question without its number", [{"Conversation_no": 1, "Question": "Why?"}], "$[0]: 'Turn_no' is a required"),
    ("an empty question", [{**QRECC[0], "Question": ""}], "$[0].Question: is empty"),
    ("a question twice", QRECC * 2, "turn 1_1: stands 2 times"),
    ("half a context", [{**QRECC[1], "Context": ["Why?"]}], "turn 1_2: Context is not question, answer"),
]


@pytest.mark.parametrize(("content", "message"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_bad_topics_are_refused_with_the_place(content: Any, message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "topics.json", content)
    with pytest.raises(InvalidInputError) as caught:
        read_topics(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_all_problems_are_listed_at_once(tmp_path: Path) -> None:
    topics = changed(IKAT_2023, ptkb=..., turns=[turn(utterance=""), turn(turn_id=0, extra=1)])
    with pytest.raises(InvalidInputError) as caught:
        read_topics(write(tmp_path / "topics.json", topics))
    assert "3 problems" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "edition", "topics", "turns"),
    [
        ("2023_train_topics.json", "ikat-2023", 11, 95),
        ("2023_dev_topics.json", "ikat-2023", 16, 216),
        ("2024_test_topics.blind.json", "ikat-2024", 17, 218),
        ("2025_test_topics.blind.json", "ikat-2025", 17, 188),
    ],
)
def test_the_tracks_own_topics(shared_data: Path, name: str, edition: str, topics: int, turns: int) -> None:
    found = read_topics(shared_data / name)
    assert (found.edition, len(found.topics), len(found.turn_ids())) == (edition, topics, turns)
