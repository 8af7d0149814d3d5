"""Damage to what is kept, and servers that reply badly: some cases of each; `make soak` tries thousands."""

import time
from collections import Counter
from pathlib import Path

import pytest

from indexes.passage_index import PassageIndex
from tests.fuzz.damaged_files import KEPT, try_damage
from tests.fuzz.http_bodies import SECONDS, make_request, send
from tests.fuzz.remote_replies import try_reply
from tests.serving import serving
from tests.stand_in import standing_in
from tests.test_remote import KEY

FEW_OR_MANY = [40, pytest.param(1000, marks=pytest.mark.soak)]


@pytest.mark.parametrize("cases", FEW_OR_MANY)
@pytest.mark.parametrize("kind", KEPT)
def test_damage_to_what_is_kept_ends_in_an_error_of_ours_or_nothing(kind: str, cases: int, tmp_path: Path) -> None:
    """Of a cache nothing is said at all: its values are computed again, and are the same."""
    cases = cases // 10 if kind == "documents" else cases  # those take longer
    whole = tmp_path / "whole"
    whole.mkdir()
    KEPT[kind].fill(whole)
    told = [try_damage(kind, whole, tmp_path, number) for number in range(cases)]
    assert any(told) == (kind == "store") or kind == "documents"
    assert all(
        any(word in error for word in ("damaged", "cannot be", "another version")) for error in filter(None, told)
    )


@pytest.mark.parametrize("cases", FEW_OR_MANY)
def test_a_server_that_replies_badly_ends_in_an_error_of_ours_or_an_answer(
    cases: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONVAGENT_API_KEY", KEY)
    monkeypatch.setenv("CONVAGENT_TIMEOUT", "0.3")
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)  # before a further attempt
    for number in range(cases):
        with standing_in() as address:
            assert (number, try_reply(address, number)) == (number, [])


@pytest.mark.parametrize("cases", [150, pytest.param(3000, marks=pytest.mark.soak)])
def test_any_request_is_answered_or_refused(cases: int, tmp_path: Path, example_index: PassageIndex) -> None:
    """Each gets a reply that the protocol has a name for, and the server goes on, without a traceback."""
    with serving(example_index.directory, tmp_path, "--model", "none", "--embedder", "none") as server:
        with server.open_client(timeout=SECONDS, follow_redirects=False) as client:
            replies = {number: send(client, make_request(number)) for number in range(cases)}
            assert client.get("/health").status_code == 200
        assert {number: found for number, (_, found) in replies.items() if found} == {}
        statuses = Counter(status for status, _ in replies.values())
        assert server.interrupt() == 0
        assert server.count_tracebacks() == 0
    assert {200, 400, 404} <= set(statuses)
    assert statuses[503] < cases / 10  # the others were looked at
