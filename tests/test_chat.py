"""Chat: what is typed, what is shown, and what is kept; at a real terminal and through a pipe."""

import io
import json
import os
import subprocess
import sys
from base64 import b64decode
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from agent.chat.interactive import COMMANDS, HELP, Terminal
from agent.chat.self_disclosure import find_self_disclosures
from agent.chat.session import Assistant, Observer, Session
from agent.chat.store import Store
from agent.models.cancellation import AnswerCancelledError, CancellationToken
from indexes.passage_index import PassageIndex
from schemas.records import Call
from tests import within
from tests.conftest import ROOT, needs_embedder

QUESTION = "Which balcony plants are non-toxic to cats?"


@pytest.fixture
def terminal(assistant: Assistant) -> Terminal:
    return Terminal(Session(assistant, Store(None)), Console(file=io.StringIO(), width=5000, highlight=False))


def shown_after(terminal: Terminal, line: str) -> str:
    """What the terminal shows after a line."""
    terminal.console.file = io.StringIO()
    terminal.handle(line)
    return str(terminal.console.file.getvalue())


def test_a_question_shows_what_was_searched_the_answer_and_its_sources(terminal: Terminal) -> None:
    shown = shown_after(terminal, QUESTION)
    assert f"searched for “{QUESTION}”, " in shown
    assert "non-toxic to cats" in shown
    assert "[1] garden-" in shown
    cited = [source for source in terminal.sources if source.cited]
    near = [source for source in terminal.sources if not source.cited]
    assert shown_after(terminal, "/sources").count("garden-") == len(cited)
    shown = shown_after(terminal, "/open 1")
    assert cited[0].passage.id in shown
    assert cited[0].quotes
    for piece in cited[0].pieces:
        assert (f">{piece.text}<" in shown) == piece.marked
        assert piece.text in shown
    assert near
    shown = shown_after(terminal, "/nearby")
    assert all(sentence in shown for sentence in terminal.nearby)
    assert all(f"[{source.number}] {source.passage.id}" in shown for source in near)
    assert "(came near the last answer, which does not cite it)" in shown_after(terminal, f"/open {near[-1].number}")
    listed = ", ".join(f"{each.number}{'' if each.cited else ' (near)'}" for each in terminal.sources)
    assert f"no source '99' (the last answer has {listed})" in shown_after(terminal, "/open 99")


def test_what_is_known_about_the_person(terminal: Terminal) -> None:
    assert "I know nothing about you" in shown_after(terminal, "/about-me")
    shown_after(terminal, "/about-me add I have two cats.")
    shown_after(terminal, "/about-me add I bake.")
    assert "2  I bake." in shown_after(terminal, "/about-me")
    assert "cats" not in shown_after(terminal, "/about-me remove 1")
    assert "there is no statement '7'" in shown_after(terminal, "/about-me remove 7")
    assert "a statement needs words" in shown_after(terminal, "/about-me add")


def list_known(terminal: Terminal) -> list[str]:
    return [statement.text for statement in terminal.session.store.list_statements()]


def test_the_last_answer_is_made_again_copied_and_rated(terminal: Terminal) -> None:
    for line in ("/retry", "/copy", "/rate good"):
        assert "there is no answer yet" in shown_after(terminal, line)
    shown_after(terminal, QUESTION)
    assert "not 'fine'" in shown_after(terminal, "/rate fine")
    shown_after(terminal, "/rate bad")
    assert terminal.session.store.read_ratings(1) == {1: "bad"}
    assert f"searched for “{QUESTION}”, " in shown_after(terminal, "/retry")
    assert (len(terminal.session.store.read_turns(1)), terminal.session.store.read_ratings(1)) == (1, {})
    copied = shown_after(terminal, "/copy").partition("\x1b]52;c;")[2].partition("\a")[0]
    assert b64decode(copied).decode() == terminal.session.turns[-1].answered.response.text


def test_what_could_be_remembered_is_a_remark_and_kept_only_on_command(terminal: Terminal) -> None:
    assert "there is nothing to remember" in shown_after(terminal, "/remember")
    line = "I have two cats. Which plants are safe?"
    assert "(/remember keeps this about you: I have two cats.)" in shown_after(terminal, line)
    assert "safe" in shown_after(terminal, "Which of them are safe?")  # the next line is a question like any other
    assert list_known(terminal) == []
    assert "I shall remember: I have two cats." in shown_after(terminal, "/remember")
    assert "there is nothing to remember" in shown_after(terminal, "/remember")
    assert "remember" not in shown_after(terminal, line)
    assert list_known(terminal) == ["I have two cats."]


ABOUT_ONESELF: dict[str, list[str]] = json.loads((ROOT / "tests/cases/about_oneself.json").read_text(encoding="utf-8"))


def test_lasting_facts_about_a_person_are_offered_and_nothing_that_passes() -> None:
    offered = [text for text in ABOUT_ONESELF["lasting"] if find_self_disclosures(f"{text} What then?") == (text,)]
    assert len(offered) >= 0.8 * len(ABOUT_ONESELF["lasting"])
    assert [text for text in ABOUT_ONESELF["passing"] if find_self_disclosures(f"{text} What then?")] == []


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("/nonsense", "there is no command /nonsense"),
        ("/model gpt.gguf", "gpt.gguf: no such model file"),
        ("/export talk.txt", "there is nothing to export yet"),
        ("/about-me sing", "/about-me does not know 'sing'"),
        ("/open", "no source ''"),
        ("/forget 7", "`convagent chats --forget 7`"),
        (QUESTION * 200, "the question is too long"),
        ("   ", ""),
    ],
)
def test_what_cannot_be_done_is_said_and_the_chat_goes_on(terminal: Terminal, line: str, answer: str) -> None:
    assert answer in shown_after(terminal, line)
    assert "non-toxic" in shown_after(terminal, QUESTION)


def test_another_conversation_and_one_to_forget(terminal: Terminal) -> None:
    store = terminal.session.store
    shown_after(terminal, QUESTION)
    shown_after(terminal, "/new")
    assert terminal.session.turns == ()
    shown_after(terminal, "What do bees need?")
    assert len(store.list_chats()) == 2
    terminal.is_sure = lambda asked: "with its 1 turn?" not in asked
    assert "Nothing is deleted" in shown_after(terminal, "/forget")
    assert (len(store.list_chats()), len(terminal.session.turns)) == (2, 1)
    terminal.is_sure = lambda _asked: True
    shown_after(terminal, "/forget")
    assert [chat.title for chat in store.list_chats()] == [QUESTION]
    assert terminal.session.turns == ()


def test_the_help_fits_a_terminal_of_80_columns() -> None:
    assert max(map(len, HELP.splitlines())) <= 80
    assert all(f" {name}" in HELP for name in COMMANDS)


def test_a_conversation_is_exported(terminal: Terminal, tmp_path: Path) -> None:
    shown_after(terminal, QUESTION)
    shown_after(terminal, f"/export {tmp_path / 'talk.md'}")
    assert (tmp_path / "talk.md").read_text().startswith(f"# {QUESTION}")
    assert "exists already" in shown_after(terminal, f"/export {tmp_path / 'talk.md'}")
    assert "ends neither in .md nor in .json" in shown_after(terminal, f"/export {tmp_path / 'talk.pdf'}")


def test_a_cancelled_answer_stops_after_the_step_in_hand_and_leaves_nothing(assistant: Assistant) -> None:
    session, token, steps = Session(assistant, Store(None)), CancellationToken(), list[Call]()

    def cancel(call: Call) -> None:
        steps.append(call)
        token.cancel()

    def interrupt(_call: Call) -> None:
        raise KeyboardInterrupt

    with pytest.raises(AnswerCancelledError, match="the answer was stopped"):
        session.ask(QUESTION, Observer(cancel, token=token))
    assert len(steps) == 1
    with pytest.raises(AnswerCancelledError):
        session.ask(QUESTION, Observer(steps.append, token=token))
    assert len(steps) == 1
    with pytest.raises(KeyboardInterrupt):
        session.ask(QUESTION, Observer(interrupt))
    assert (session.turns, session.store.list_chats()) == ((), ())
    assert session.ask(QUESTION).response.used
    assert len(session.turns) == 1


def test_a_question_through_a_pipe(tmp_path: Path, example_index: PassageIndex) -> None:
    index, quick = example_index.directory, ("-m", "none", "--embedder", "none")
    convagent = partial(within.convagent, CONVAGENT_DATA=str(tmp_path / "data"), COLUMNS="200")
    result = convagent("chat", "-i", index, *quick, text=f"{QUESTION}\n")
    assert result.returncode == 0
    assert "non-toxic to cats" in result.stdout
    assert "[1] garden-" in result.stdout
    again = convagent("chat", "--continue", *quick, text="/x\nWhich survive frost?\n")
    assert again.returncode == 2
    assert "there is no command /x\n  /help lists them." in again.stdout
    assert "Which survive frost? (" in again.stdout
    assert "2  " in convagent("chats", "frost").stdout
    hidden = convagent("chat", "-i", index, *quick, "--incognito", text="What do bees need?\n")
    assert hidden.returncode == 0
    assert "bees" not in convagent("chats").stdout
    assert convagent("chats", "--forget", "99999").returncode == 4
    assert convagent("chats", "--forget", "1").returncode == 0
    assert convagent("chat", "--continue").returncode == 4


@needs_embedder
@pytest.mark.parametrize("setting", [{"PYTHONIOENCODING": "ascii"}, {"CONVAGENT_CACHE": "{}/file/cache"}], ids=str)
def test_the_answer_is_there_whatever_the_environment(setting: dict[str, str], tmp_path: Path) -> None:
    """Also where a cache cannot be kept, with the models that want one."""
    (tmp_path / "file").touch()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "frost.txt").write_text("The “hardy” fuchsia survives frost.\n", encoding="utf-8")
    asked = "Which fuchsia survives frost?\n"
    options = ("--docs", str(tmp_path / "notes"), "-m", "none", "--incognito")
    command = [sys.executable, str(ROOT / "cli.py"), "chat", *options]
    env = os.environ | {name: value.format(tmp_path) for name, value in setting.items()}
    result = subprocess.run(command, input=asked, env=env, capture_output=True, text=True, check=False)
    assert (result.returncode, "Traceback" in result.stderr) == (0, False), result.stderr
    assert "fuchsia survives frost" in " ".join(result.stdout.split())
    assert ("\\u201chardy\\u201d" in result.stdout) == ("PYTHONIOENCODING" in setting)
    assert result.stderr.count("cannot be written") == ("CONVAGENT_CACHE" in setting)
