"""The writing way: what a model makes of the passages, well or badly, and what is shown while it writes."""

import io
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx
import msgspec
import pytest
from rich.console import Console

from agent.chat.interactive import Terminal
from agent.chat.session import PLAN, Assistant, Session, open_assistant, open_collection
from agent.chat.store import Store
from agent.models.protocol import LanguageModel
from agent.models.registry import open_model
from agent.turn.writing.checked_answer import Writer
from agent.turn.writing.responses import generate_responses
from indexes.documents.document_index import open_documents
from indexes.passage_index import PassageIndex
from schemas.records import Passage, Plan, Query, Response
from tests.conftest import PATIENCE, no_progress
from tests.serving import serving
from tests.stand_in import StandIn, draft, name_step, standing_in

BREAD = Passage("bread:1", "Rice bread keeps for two days in a tin. Rice bread is made without wheat.")
BRASS = Passage("brass:1", "A trumpet sounds lower in the cold.")
ASKED = "How long does rice bread keep in a tin?"
KEEPS, MADE = "In a tin, rice bread keeps for two days.", "Rice bread is made without wheat."
NINE = "Rice bread keeps for nine days in a tin."
QUOTED = ["Rice bread keeps for two days in a tin.", MADE]
SORRY = "I am sorry, but I cannot help with that."
PLANTS = "How often do ferns need water in summer?"


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
    [response] = generate_responses(Query(ASKED), (), [BREAD, BRASS], Writer(llm, show), None, Plan())
    return [(sentence.text, sentence.passage_ids) for sentence in response.sentences]


BEHAVIOURS: dict[str, tuple[str, list[str]]] = {  # what is written, the answer
    "good": (draft((KEEPS, "1"), (MADE, "2")), [KEEPS, MADE]),
    "inventing first": (draft((NINE, "1"), (MADE, "2")), QUOTED),
    "inventing later": (draft((KEEPS, "1"), ("Rice bread is made with wheat.", "2")), [KEEPS, MADE]),
    "beginning with what does not answer": (draft((MADE, "2"), (KEEPS, "1")), QUOTED),
    "citing wrongly": (draft((KEEPS, "2")), QUOTED),
    "citing nothing": (KEEPS, QUOTED),
    "citing what is not there": (draft((KEEPS, "9")), QUOTED),
    "repeating": (draft((KEEPS, "1"), (KEEPS, "1")), [KEEPS, MADE]),
    "refusing": (SORRY, QUOTED),
    "thinking first": (f"<think>{NINE} [1]</think>{KEEPS} [1]", [KEEPS, MADE]),
}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_whatever_is_written_the_answer_is_what_the_passages_say(
    behaviour: str, streamed: bool, llm: LanguageModel
) -> None:
    written, expected = BEHAVIOURS[behaviour]
    behave(write=written)
    shown: list[Response] = []
    assert answer(llm, shown.append if streamed else None) == [(text, ("bread:1",)) for text in expected]
    assert ("stream" in StandIn.asked[0]) == streamed
    count = len(expected) * (streamed and expected != QUOTED)
    assert [len(response.sentences) for response in shown] == list(range(1, 1 + count))


def test_it_reads_the_sentences_that_were_chosen_after_two_examples(llm: LanguageModel) -> None:
    behave(write=draft((KEEPS, "1")))
    answer(llm)
    messages = StandIn.asked[-1]["messages"]
    assert [message["role"] for message in messages] == ["system", *["user", "assistant"] * 2, "user"]
    assert messages[-1]["content"] == f"Question: {ASKED}\n[1] {QUOTED[0]}\n[2] {QUOTED[1]}"


def test_what_was_quoted_and_is_not_said_comes_near_in_a_chat(llm: LanguageModel) -> None:
    behave(write=draft((KEEPS, "1")))
    plan = PLAN
    [response] = generate_responses(Query(ASKED), (), [BREAD, BRASS], Writer(llm), None, plan)
    assert [sentence.text for sentence in response.nearby][:2] == QUOTED


def test_a_server_that_answers_a_stream_with_the_whole(llm: LanguageModel) -> None:
    StandIn.replies = [(200, {"choices": [{"message": {"content": draft((KEEPS, "1"))}, "finish_reason": "stop"}]})]
    assert answer(llm, lambda _: None) == [(KEEPS, ("bread:1",)), (MADE, ("bread:1",))]


ENDS: dict[str, Callable[[], Iterator[str]]] = {
    "never": lambda: iter(lambda: " \n", ""),
    "in the middle": lambda: iter(["Rice bread is ma"]),
    "with a fault": lambda: iter(["[[[1"]),
}


@pytest.mark.parametrize("end", ENDS)
def test_what_was_shown_stays_where_a_reply_does_not_end_well(
    end: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_parts(step: str) -> Iterator[str]:
        yield f"{KEEPS} [1] "
        yield from ENDS[end]()

    StandIn.write_parts = staticmethod(write_parts)
    shown: list[Response] = []
    monkeypatch.setenv("CONVAGENT_TIMEOUT", "1")  # s, that a model which is opened now waits
    with closing(open_model(address)) as llm:
        assert answer(llm, shown.append) == [(KEEPS, ("bread:1",)), (MADE, ("bread:1",))]
    assert len(shown) == 2


# Whole documents

LEASE = "# Lease\n\nThe rent of the hut is 410 EUR a month.\n\nDogs stay outside the hut."
LEASE_RENT = "The rent of the hut is 410 EUR a month."
LOW = "The rent of the hut is 110 EUR a month."


@pytest.fixture
def reader(address: str, tmp_path: Path) -> Iterator[Session]:
    """Somebody who asks a folder with a model that writes."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "lease.md").write_text(LEASE)
    index = open_documents(folder, tmp_path, None, no_progress).index
    opened = open_assistant(open_collection(str(folder), index, None), address)
    yield Session(opened, Store(None))
    opened.llm.close()


SUMMARIES: dict[str, tuple[str, list[str]]] = {  # what is written, what is said
    "good": (draft(("Dogs stay outside the hut.", "2")), ["Dogs stay outside the hut."]),
    "inventing": (draft((LOW, "1"), (LEASE_RENT, "1")), [LEASE_RENT]),
    "inventing alone": (draft((LOW, "1")), [LEASE_RENT, "Dogs stay outside the hut."]),
    "refusing": (SORRY, [LEASE_RENT, "Dogs stay outside the hut."]),
}


@pytest.mark.parametrize("case", SUMMARIES)
def test_a_summary_is_written_of_the_central_sentences(case: str, reader: Session) -> None:
    written, said = SUMMARIES[case]
    behave(write=written)
    answered = reader.ask("Summarise the lease")
    assert [sentence.text for sentence in answered.response.sentences][: len(said)] == said
    assert {id.partition(":")[0] for id in answered.response.used} == {"lease.md"}
    assert [name_step(body) for body in StandIn.asked].count("write") == 1


# At the doors


class SlowWriter:
    """Quotes two sentences that it is shown; the second only once it is told to go on."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.first, self.second = "", ""

    def write_parts(self, step: str) -> Iterator[str]:
        if step != "write":
            yield '{"text": "Which plants grow in the shade?"}'
            return
        prompt = StandIn.asked[-1]["messages"][-1]["content"]
        self.first, self.second = re.findall(r"^\[[12]\] (?:.* » )?(.*)$", prompt, re.MULTILINE)[:2]
        yield f"{self.first} [1] "
        self.go_on.wait(PATIENCE)
        yield f"{self.second} [2]"


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
    assert said == f"{slow.first} [1] {slow.second} [2]"


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
    assert f"{slow.first} [1] {slow.second} [2]" in screen.getvalue()
