"""The writing way: what a model makes of the passages, well or badly, and what is shown while it writes."""

import io
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path

import httpx
import msgspec
import pytest
from rich.console import Console

from agent.chat.interactive import Terminal
from agent.chat.session import Assistant, Session, open_assistant, open_collection
from agent.chat.store import Store
from agent.models.protocol import Conversation, LanguageModel
from agent.models.registry import open_model
from agent.models.wrapper import ModelWrapper
from agent.turn.writing.checked_answer import Writer
from agent.turn.writing.responses import generate_responses
from indexes.documents.collection import Collection
from indexes.documents.document_index import open_documents
from indexes.passage_index import PassageIndex
from indexes.text.units import split_units
from schemas.records import Message, Passage, Plan, Query, Response
from tests.conftest import PATIENCE
from tests.serving import serving
from tests.stand_in import StandIn, draft, standing_in

BREAD = Passage("bread:1", "Rice bread keeps for two days in a tin. It is made without wheat.")
BRASS = Passage("brass:1", "Brass keeps its tune in the cold.")
ASKED = "How long does rice bread keep?"
TALK = Conversation("Be brief.", (Message("user", ASKED),))
KEEPS, TUNE = "Rice bread keeps for two days.", "Brass keeps its tune in the cold."
TWO_DAYS = '{"text": "In a tin, rice bread keeps for two days.", "passages": ["1"]}'
NINE_DAYS = '{"text": "Rice bread keeps for nine days.", "passages": ["1"]}'
SORRY = "I am sorry, but I cannot help with that."
QUOTED = "Rice bread keeps for two days in a tin. It is made without wheat."
PLANTS = "Which plants grow well in pots on a shady balcony?"


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)  # before a further attempt
    with standing_in() as started:
        yield f"{started}#big"


@pytest.fixture
def llm(address: str) -> Iterator[LanguageModel]:
    with closing(open_model(address)) as opened:
        yield opened


@pytest.fixture
def assistant(address: str, example_index: PassageIndex) -> Iterator[Assistant]:
    opened = open_assistant(open_collection("examples", example_index, None), address)
    yield opened
    opened.llm.close()


def behave(**replies: str) -> None:
    """Have the stand-in write this at each step."""

    def write_parts(step: str) -> Iterator[str]:
        yield replies[step]

    StandIn.write_parts = staticmethod(write_parts)


def answer(llm: LanguageModel, show: Callable[[Response], None] | None = None) -> list[tuple[str, tuple[str, ...]]]:
    [response] = generate_responses(Query(ASKED), TALK, (), [BREAD, BRASS], Writer(llm, show), None, Plan())
    return [(sentence.text, sentence.passage_ids) for sentence in response.sentences]


def count_asked(step: str) -> int:
    return sum(body["response_format"]["json_schema"]["name"] == step for body in StandIn.asked)


BEHAVIOURS: dict[str, tuple[str, str, list[tuple[str, tuple[str, ...]]], int]] = {
    # what is written, what is written when asked again, the answer, how often it is asked again
    "good": (draft((KEEPS, "1"), (TUNE, "2")), "", [(KEEPS, ("bread:1",)), (TUNE, ("brass:1",))], 0),
    "sloppy": (
        draft(("Rice bread keeps for nine days in a tin.", "1"), (TUNE, "2")),
        TWO_DAYS,
        [("In a tin, rice bread keeps for two days.", ("bread:1",)), (TUNE, ("brass:1",))],
        1,
    ),
    "inventing": (draft(("Rice bread keeps for nine days in a tin.", "1")), NINE_DAYS, [(QUOTED, ("bread:1",))], 1),
    "citing wrongly": (draft((KEEPS, "2"), (TUNE, "1")), "", [(KEEPS, ("bread:1",)), (TUNE, ("brass:1",))], 0),
    "repeating": (draft((KEEPS, "1"), (KEEPS, "1"), (KEEPS, "2")), "", [(KEEPS, ("bread:1",))], 0),
    "correcting in another form": (
        draft(("Rice bread keeps for nine days in a tin.", "1")),
        SORRY,
        [(QUOTED, ("bread:1",))],
        3,
    ),
}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_whatever_is_written_the_answer_is_what_the_passages_say(
    behaviour: str, streamed: bool, llm: LanguageModel
) -> None:
    written, corrected, expected, corrections = BEHAVIOURS[behaviour]
    behave(write=written, correct=corrected)
    shown: list[Response] = []
    assert answer(llm, shown.append if streamed else None) == expected
    assert count_asked("correct") == corrections
    assert ("stream" in StandIn.asked[0]) == streamed
    assert [response.sentences for response in shown] == [
        shown[-1].sentences[:count] for count in range(1, len(expected) * streamed + 1)
    ]


def test_the_second_chance_comes_with_the_reason_and_what_was_cited(llm: LanguageModel) -> None:
    behave(write=draft(("Rice bread keeps for nine days in a tin.", "1")), correct=TWO_DAYS)
    answer(llm)
    prompt = StandIn.asked[-1]["messages"][-1]["content"]
    assert "You wrote: Rice bread keeps for nine days in a tin.\nBut the passage does not say 9." in prompt
    assert BREAD.text in prompt
    assert BRASS.text not in prompt


def test_a_small_model_gets_no_second_chance(llm: LanguageModel) -> None:
    behave(write=draft(("Rice bread keeps for nine days in a tin.", "1")))

    class Small(ModelWrapper):
        writes_answers = False

    [response] = generate_responses(
        Query(ASKED), TALK, (), [BREAD, BRASS], Writer(Small(llm)), None, Plan(answer="write")
    )
    assert (response.text, count_asked("correct")) == (QUOTED, 0)


def test_a_server_that_answers_a_stream_with_the_whole(llm: LanguageModel) -> None:
    StandIn.replies = [(200, {"choices": [{"message": {"content": draft((KEEPS, "1"))}, "finish_reason": "stop"}]})]
    assert answer(llm, lambda _: None) == [(KEEPS, ("bread:1",))]


OPENED = draft((KEEPS, "1"), (TUNE, "2")).partition(', {"text": "Brass')[0]
ENDS: dict[str, Callable[[], Iterator[str]]] = {
    "never": lambda: iter(lambda: " \n", ""),
    "in the middle": lambda: iter([', {"text": "Brass ke']),
    "with a fault": lambda: iter(['", "passages": ["1"']),
}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that is opened after this waits for a second."""
    monkeypatch.setenv("CONVAGENT_TIMEOUT", "1")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("end", ENDS)
def test_what_was_shown_stays_where_a_reply_does_not_end_well(end: str, llm: LanguageModel) -> None:
    def write_parts(step: str) -> Iterator[str]:
        yield OPENED
        yield from ENDS[end]()

    StandIn.write_parts = staticmethod(write_parts)
    shown: list[Response] = []
    assert answer(llm, shown.append) == [(KEEPS, ("bread:1",))]
    assert len(shown) == 1


# Whole documents

LEASE = "# Lease\n\nThe rent of the hut is 410 EUR a month.\n\nDogs stay outside the hut."
LEASE_RENT = "The rent of the hut is 410 EUR a month."
LOW = "The rent of the hut is 110 EUR a month."


def show_no_progress(_doing: str, _of: int) -> AbstractContextManager[Callable[[int], None]]:
    return nullcontext(lambda _done: None)


@pytest.fixture
def reader(address: str, tmp_path: Path) -> Iterator[Session]:
    """Somebody who asks a folder with a model that writes."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "lease.md").write_text(LEASE)
    index = open_documents(folder, tmp_path, None, show_no_progress).index
    opened = open_assistant(open_collection(str(folder), index, None), address)
    yield Session(opened, Store(None))
    opened.llm.close()


SUMMARIES: dict[str, tuple[str, list[str]]] = {  # what is written, what is said
    "good": (draft(("The rent of the hut is 410 EUR.", "1")), ["The rent of the hut is 410 EUR."]),
    "inventing": (draft((LOW, "1")), [LEASE_RENT]),
    "refusing": (SORRY, [LEASE_RENT, "Dogs stay outside the hut."]),
}


@pytest.mark.parametrize("case", SUMMARIES)
def test_a_summary_is_written_and_held_against_the_whole_document(case: str, reader: Session) -> None:
    written, said = SUMMARIES[case]
    behave(summarise=written, correct=f'{{"text": "{LOW}", "passages": ["1"]}}')
    answered = reader.ask("Summarise the lease")
    assert [sentence.text for sentence in answered.response.sentences][: len(said)] == said
    assert {id.partition(":")[0] for id in answered.response.used} == {"lease.md"}
    assert count_asked("summarise") == (3 if case == "refusing" else 1)
    assert bool(answered.without_model) == (case == "refusing")


def test_a_summary_is_not_written_where_somebody_must_avoid_something(reader: Session) -> None:
    (Path(reader.assistant.source) / "pie.md").write_text(
        "# Pie\n\nBake the pie for an hour. Warning: it contains peanuts."
    )
    reader.store.add_statement("I am allergic to peanuts.")
    behave(summarise=draft((LEASE_RENT, "1")), write=draft((LEASE_RENT, "1")), context="{}")
    index = open_documents(
        Path(reader.assistant.source), Path(reader.assistant.source).parent, None, show_no_progress
    ).index
    reader.assistant.current.replace(Collection(reader.assistant.source, index))
    reader.ask("Summarise the pie")
    assert count_asked("summarise") == 0


# At the doors


class SlowWriter:
    """Quotes two sentences of the first passage it is shown; the second only once it is told to go on."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.first, self.second = "", ""

    def write_parts(self, step: str) -> Iterator[str]:
        if step != "write":
            yield '{"text": "Which plants grow in the shade?"}'
            return
        prompt = StandIn.asked[-1]["messages"][-1]["content"]
        shown = Passage("", re.findall(r"^\[1\] (.*)$", prompt, re.MULTILINE)[0])
        self.first, self.second = [unit.text for unit in split_units(shown) if unit.is_statement][:2]
        yield draft((self.first, "1")).removesuffix("]}")
        self.go_on.wait(PATIENCE)
        yield ", " + draft((self.second, "1")).partition("[")[2]


@pytest.fixture
def slow(address: str) -> Iterator[SlowWriter]:
    writer = SlowWriter()
    StandIn.write_parts = staticmethod(writer.write_parts)
    yield writer
    writer.go_on.set()


def test_v1_streams_what_is_written(
    slow: SlowWriter, address: str, tmp_path: Path, example_index: PassageIndex
) -> None:
    body = {"model": "convagent", "messages": [{"role": "user", "content": PLANTS}], "stream": True}
    said = ""
    with (
        serving(example_index.directory, tmp_path, "--model", address, "--embedder", "none", "--incognito") as running,
        httpx.stream(
            "POST", f"{running.address}v1/chat/completions", json=body, headers=running.key, timeout=PATIENCE
        ) as reply,
    ):
        for line in reply.iter_lines():
            if line.startswith("data: {"):
                choices = msgspec.json.decode(line.removeprefix("data: "))["choices"]
                said += choices[0]["delta"].get("content", "")
            if slow.first and said == f"{slow.first} [1]":
                slow.go_on.set()
    assert said == f"{slow.first} [1] {slow.second} [1]"


def test_the_page_shows_what_is_written(
    slow: SlowWriter, address: str, tmp_path: Path, example_index: PassageIndex
) -> None:
    arguments = ("--model", address, "--embedder", "none", "--incognito")
    with (
        serving(example_index.directory, tmp_path, *arguments) as running,
        running.open_client() as client,
    ):
        page = client.post("/ask", data={"question": PLANTS})
        while not slow.first or f"{slow.first} [1]</p>" not in client.get(f"{page.url.path}/steps").text:
            pass
        slow.go_on.set()
        while "data-working" in page.text:
            page = client.get(page.url)
        assert slow.second in page.text


def test_the_terminal_shows_what_is_written(slow: SlowWriter, assistant: Assistant) -> None:
    screen = io.StringIO()
    console = Console(file=screen, width=5000, force_terminal=True, highlight=False)
    terminal = Terminal(Session(assistant, Store(None)), console)
    asking = threading.Thread(target=terminal.handle, args=(PLANTS,))
    asking.start()
    while asking.is_alive() and not (slow.first and f"{slow.first} [1]" in screen.getvalue()):
        asking.join(0.05)
    assert asking.is_alive()
    slow.go_on.set()
    asking.join(PATIENCE)
    assert f"{slow.first} [1] {slow.second} [1]" in screen.getvalue()


@pytest.mark.parametrize(
    "reply", [SORRY, '{"sentences": []}', '{"sentences": [{"text": "Ferns.", "passages": ["9"]}]}']
)
def test_a_turn_whose_model_writes_no_answer_is_answered_without_it(reply: str, assistant: Assistant) -> None:
    behave(write=reply)
    answered = Session(assistant, Store(None)).ask(PLANTS)
    assert answered.without_model
    assert answered.response.used
