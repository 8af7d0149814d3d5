"""Several people on one server: each with a token, and what one of them says is nobody else's."""

import json
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

import httpx
import pytest

from agent.chat.store import ChatTurn, Store
from agent.serve.users import Access, add_user, read_users, remove_user
from indexes.passage_index import PassageIndex
from schemas.errors import InvalidInputError, MissingError, UsageError
from schemas.records import Hit, Passage, Query, Response, Sentence, TurnResult
from tests import within
from tests.serving import ASKED, NO_MODELS, SHADE, Server, ask, serving
from tests.stand_in import WORKING, StandIn, standing_in


@dataclass(frozen=True, slots=True)
class Team:
    """A server, and the clients of two of its users."""

    server: Server
    file: Path
    ana: httpx.Client
    ben: httpx.Client


def users(file: Path, *arguments: str) -> CompletedProcess[str]:
    """What `convagent users` says of a file."""
    command, *rest = arguments
    return within.convagent("users", command, *rest, "--file", str(file), CONVAGENT_DATA=str(file.parent))


def open_client(server: Server, token: str) -> httpx.Client:
    return server.open_client(headers={"Authorization": f"Bearer {token}"})


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory, example_index: PassageIndex) -> Iterator[Team]:
    folder = tmp_path_factory.mktemp("team")
    file = folder / "users.json"
    ana, ben = add_user(file, "ana", anew=False), add_user(file, "ben", anew=False)
    Store(folder / "convagent.sqlite").add_statement("I am the person whose machine it is.")
    with (
        serving(example_index.directory, folder, *NO_MODELS, "--users", str(file)) as server,
        open_client(server, ana) as of_ana,
        open_client(server, ben) as of_ben,
    ):
        yield Team(server, file, of_ana, of_ben)


def test_a_token_is_printed_once_and_kept_as_a_hash(tmp_path: Path) -> None:
    file = tmp_path / "users.json"
    token, other = (users(file, "add", name).stdout.strip() for name in ("ana", "ben"))
    assert token not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text())["ana"].startswith("sha256:")
    again = users(file, "add", "ana")
    assert (again.returncode, "--new-token" in again.stderr) == (2, True)
    assert users(file, "list").stdout == "ana\nben\n"
    renewed = users(file, "add", "ana", "--new-token").stdout.strip()
    access = Access(users=file)
    assert [access.find_user(each) for each in (token, other, renewed)] == [None, "ben", "ana"]
    assert users(file, "remove", "ana").returncode == 0
    assert access.find_user(renewed) is None
    assert users(file, "remove", "ana").returncode == 4


WRONG = [
    b"",
    b'{"ana": "a token in clear"}',
    b'{"Ana": "sha256:%s"}' % (b"0" * 64),
]


def test_users_and_files_that_are_none(tmp_path: Path) -> None:
    file = tmp_path / "users.json"
    with pytest.raises(MissingError) as error:
        Access(users=file)
    assert "convagent users add" in error.value.remedy
    for name in ("", "Ana", "../x", "a" * 33, "ana\n"):
        with pytest.raises(UsageError):
            add_user(file, name, anew=False)
    for content in WRONG:
        file.write_bytes(content)
        with pytest.raises(InvalidInputError, match=r"users\.json"):
            read_users(file)
    file.unlink()
    token = add_user(file, "ana", anew=False)
    access = Access(users=file)
    file.write_text("{torn")  # a file that breaks meanwhile changes nothing
    assert access.find_user(token) == "ana"
    file.unlink()
    assert access.find_user(token) == "ana"
    other = add_user(file, "ben", anew=False)
    assert (access.find_user(token), access.find_user(other)) == (None, "ben")


def test_nobody_sees_or_changes_what_is_anothers(team: Team) -> None:
    page = ask(team.ana, SHADE)
    chat = page.url.path
    team.ana.post("/statements", data={"text": "I have two cats."})
    statement = re.findall(r'action="(/statements/\d+)"', team.ana.get("/").text)[0]
    for path in (chat, f"{chat}/conversation.md", f"{chat}/conversation.json"):
        assert team.ana.get(path).status_code == 200
        assert team.ben.get(path).status_code == 404
    assert team.ben.post(f"{chat}/delete").status_code == 404
    assert team.ben.post(statement, data={"text": "I have none."}).status_code == 404
    assert team.ben.post(statement, data={"do": "forget"}).status_code == 404
    assert "There is no conversation" in ask(team.ben, "And how often?", chat=chat.rpartition("/")[2]).text
    for text in (team.ben.get("/").text, team.ben.get("/", params={"q": "shady"}).text):
        assert (SHADE in text, "two cats" in text, f'href="{chat}"' in text) == (False, False, False)
        assert "whose machine" not in text
    assert "Signed in as ben" in team.ben.get("/").text
    of_ana = team.ana.get("/").text
    assert ("I have two cats." in of_ana, "whose machine" in of_ana) == (True, False)
    asked = team.ana.post("/ask", data={"question": SHADE}, follow_redirects=False).headers["location"]
    for path in (asked, f"{asked}/steps"):
        assert team.ben.get(path).status_code == 404
    assert team.ben.post(f"{asked}/stop").status_code == 404
    assert team.ana.get(asked).status_code == 200


def test_one_who_is_removed_is_out_at_once_and_one_who_is_added_is_in(team: Team) -> None:
    with open_client(team.server, add_user(team.file, "cleo", anew=False)) as cleo:
        assert "Signed in as cleo" in cleo.get("/").text
        remove_user(team.file, "cleo")
        assert cleo.get("/").status_code == 401


def test_a_link_of_another_site_does_not_sign_in_as_somebody_else(team: Team) -> None:
    token = team.ana.headers["authorization"].split()[1]
    with team.server.open_stranger() as browser:
        page = browser.get("/", params={"token": token}, headers={"sec-fetch-site": "cross-site"})
        assert (page.status_code, "set-cookie" in page.headers) == (200, False)
        assert "signed in as ana" in page.text
        assert browser.get("/").status_code == 401
        browser.post("/sign-in", data={"token": token})
        assert "Signed in as ana" in browser.get("/").text


def test_a_place_in_the_queue_is_shown(tmp_path: Path, example_index: PassageIndex) -> None:
    """The model hangs with the first question of ana; ben is before her second."""
    file = tmp_path / "users.json"
    tokens = [add_user(file, name, anew=False) for name in ("ana", "ben")]
    with (
        standing_in() as address,
        serving(example_index.directory, tmp_path, "-m", address, "--embedder", "none", "--users", str(file)) as server,
        open_client(server, tokens[0]) as ana,
        open_client(server, tokens[1]) as ben,
    ):
        StandIn.replies = [WORKING] * 100
        pages = []
        for client in (ana, ben, ana, ana):
            pages.append((client, client.post("/ask", data={"question": SHADE})))
            assert "data-working" in pages[-1][1].text
        shown = [re.findall(r"waiting: (\d+) before you", client.get(page.url).text) for client, page in pages]
        assert shown[1:] == [["1"], ["2"], ["3"]] or shown[1:] == [["2"], ["1"], ["3"]]
        with ben.stream("POST", "/v1/chat/completions", json=ASKED | {"stream": True}) as reply:
            found = next(line for line in reply.iter_lines() if line.startswith(":"))
        assert re.fullmatch(r": \d before you", found)


def test_what_a_user_said_can_be_deleted_with_the_user(tmp_path: Path) -> None:
    file, store = tmp_path / "users.json", Store(tmp_path / "convagent.sqlite")
    for name in ("ana", "ben"):
        add_user(file, name, anew=False)
        own = store.for_user(name)
        own.add_statement("I bake.")
        own.add_turn(own.start_chat("notes"), ChatTurn("Which bread?", many_sources(1)))
    removed = users(file, "remove", "ana", "--forget")
    assert (removed.returncode, "1 conversations and 1 statements deleted" in removed.stderr) == (0, True)
    assert (store.for_user("ana").list_chats(), store.for_user("ana").list_statements()) == ((), ())
    assert len(store.for_user("ben").list_chats()) == len(store.for_user("ben").list_statements()) == 1


# Long lists


def many_sources(count: int) -> TurnResult:
    passages = tuple(Passage(f"table.csv:{number}", f"Row {number} counts.") for number in range(count))
    sentences = tuple(Sentence(passage.text, (passage.id,)) for passage in passages)
    hits = tuple(Hit(passage.id, 1.0) for passage in passages)
    return TurnResult("1_1", Query("How many rows?"), (), hits, passages, (Response(sentences),))


def test_many_sources_are_shown_whole(team: Team) -> None:
    store = Store(team.file.parent / "convagent.sqlite").for_user("ben")
    chats = [store.start_chat("notes") for _ in range(2)]
    for chat, count in zip(chats, (25, 1), strict=True):
        store.add_turn(chat, ChatTurn("Question of many?", many_sources(count)))
    found = re.findall(r'href="/chats/(\d+)"', team.ben.get("/?q=many").text)
    assert found == [str(chat) for chat in reversed(chats)]
    assert team.ben.get(f"/chats/{chats[0]}").text.count("<blockquote>") == 25
