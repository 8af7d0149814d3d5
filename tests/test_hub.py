"""Models from a hub: a stand-in on loopback serves a real GGUF as the hub would."""

import errno
import json
import socket
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from huggingface_hub import constants
from huggingface_hub.errors import LocalEntryNotFoundError

from agent.models.bundled import find_bundled_gguf
from agent.models.catalogue import _kind_from_metadata, detect_kind, find_model_file, pull_model
from agent.models.embedding.minilm import convert_to_gguf, find_weights
from agent.models.hub import _explain, choose_file, fetch
from agent.models.learned import QUERY_ENCODER_BASE
from indexes.passage_index import PassageIndex
from indexes.storage.files import hash_file
from schemas.errors import MissingError, UsageError
from tests.conftest import needs_embedder, needs_model
from tests.test_cli import convagent

FILE = "mini-F16.gguf"


class Hub(BaseHTTPRequestHandler):
    """One repository with one file, which comes a megabyte at a time."""

    repo: str
    gguf: Path
    seconds: float  # for a megabyte
    etag: str
    asked: list[str]

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        type(self).asked.append(f"{self.command} {self.path} {self.headers.get('Range', '')}".strip())
        if self.path.startswith(f"/api/models/{self.repo}/tree/main"):
            listing = [{"type": "file", "path": FILE, "size": self.gguf.stat().st_size, "oid": "0" * 40}]
            return self._send(json.dumps(listing).encode(), "application/json", body=body)
        if self.path == f"/{self.repo}/resolve/main/{FILE}":
            return self._send(self.gguf.read_bytes(), "application/octet-stream", body=body)
        self.send_response(404)
        self.send_header("X-Error-Code", "EntryNotFound" if f"/{self.repo}/" in self.path else "RepoNotFound")
        self.send_header("Content-Length", "0")
        return self.end_headers()

    def _send(self, data: bytes, kind: str, *, body: bool) -> None:
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        self.send_response(206 if start else 200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data) - start))
        self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("ETag", f'"{self.etag}"')
        self.send_header("X-Repo-Commit", "b" * 40)
        self.end_headers()
        with suppress(ConnectionError):  # of one who stops
            for at in range(start, len(data) if body else start, 1 << 20):
                self.wfile.write(data[at : min(at + (1 << 20), len(data))])
                time.sleep(self.seconds)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@contextmanager
def serving_hub(repo: str, gguf: Path, seconds: float = 0) -> Iterator[dict[str, str]]:
    """The settings of somebody whose hub is the stand-in, but for places."""
    Hub.repo, Hub.gguf, Hub.asked, Hub.etag, Hub.seconds = repo, gguf, [], hash_file(gguf), seconds
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield {
            "HF_ENDPOINT": f"http://127.0.0.1:{server.server_address[1]}",
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_OFFLINE": "0",
        }
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The settings of somebody whose hub has one embedding model."""
    places = {"HF_HOME": "hf", "CONVAGENT_CACHE": "cache", "CONVAGENT_DATA": "data"}
    with serving_hub("us/mini", convert_to_gguf(find_weights(), QUERY_ENCODER_BASE)) as settings:
        yield settings | {name: str(tmp_path / place) for name, place in places.items()}


def downloads() -> list[str]:
    """The ranges of the file that were asked for, in order."""
    start = f"GET /{Hub.repo}/resolve/main/{FILE}"
    return [asked.removeprefix(start).strip() for asked in Hub.asked if asked.startswith(start)]


@needs_embedder
def test_a_model_is_pulled_listed_found_and_used_offline(
    home: dict[str, str], tmp_path: Path, example_index: PassageIndex
) -> None:
    def model(*command: str, **environment: str) -> tuple[int, str, str]:
        result = convagent("model", *command, cwd=tmp_path, **home, **environment)
        return result.returncode, result.stdout, result.stderr

    with pytest.raises(MissingError, match="is not in the cache"):
        find_model_file("hf:us/mini")
    interrupted = tmp_path / f"hf/hub/models--us--mini/blobs/{Hub.etag}.partial"
    interrupted.parent.mkdir(parents=True)
    interrupted.write_bytes(Hub.gguf.read_bytes()[:1000])
    code, path, said = model("pull", "hf:us/mini:f16")
    use = "chat, ask, serve and mcp use hf:us/mini"
    assert (code, said) == (0, f"fetched, 46 MB\n{use}:f16\n")
    assert Path(path.strip()).read_bytes() == Hub.gguf.read_bytes()
    assert model("pull", "hf:us/mini") == (0, path, f"was there already, 46 MB\n{use}\n")
    told = convagent("doctor", "--json", cwd=tmp_path, **home).stdout
    assert json.loads(told)["sections"]["Embedding model"][0]["value"] == "hf:us/mini"
    asked = len(Hub.asked)
    rows = {row["name"]: row for row in json.loads(model("list", "--json")[1])}
    size = Hub.gguf.stat().st_size
    mini = {"name": f"hf:us/mini/{FILE}", "kind": "embedding", "bytes": size, "remedy": ""}
    assert rows[f"hf:us/mini/{FILE}"] == mini
    assert list(rows)[:2] == ["smollm2", "minilm"]
    search = ("search", example_index.directory, "musical instrument of brass", "-k", "1", "--embedder", "hf:us/mini")
    assert convagent(*search, cwd=tmp_path, **home | {"HF_HUB_OFFLINE": "1"}).returncode == 0
    assert len(Hub.asked) == asked  # none of them asks the hub
    assert downloads() == ["bytes=1000-"]
    for name, code, remedy in [
        ("hf:us/none", 4, "no such repository"),
        ("hf:us/mini:q2", 2, f".gguf files: {FILE}"),
    ]:
        ended, _, said = model("pull", name)
        assert (ended, remedy in said) == (code, True), said


@needs_embedder
def test_what_came_damaged_is_not_kept(home: dict[str, str], tmp_path: Path) -> None:
    Hub.etag = "a" * 64
    result = convagent("model", "pull", "hf:us/mini", cwd=tmp_path, **home)
    assert (result.returncode, "came damaged" in result.stderr) == (6, True)
    assert not [path for path in (tmp_path / "hf").rglob("*") if path.is_file() and path.stat().st_size > 1000]


def test_without_a_network_it_is_told_at_once_and_other_names_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{taken.getsockname()[1]}")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with pytest.raises(MissingError, match=r"out of reach \([^\n]*refused\)\n  Connect this machine") as told:
        fetch("hf:us/mini")  # no retry, each of which would be told
    assert "\n" not in told.value.what
    with pytest.raises(UsageError, match=r"unknown model 'nosuch' \(available: minilm, multilingual, hf:"):
        pull_model("nosuch")


def test_what_goes_wrong_is_told_with_what_to_do_and_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = [
        (OSError(errno.ENOSPC, "No space left on device"), 6, "Make room, or set HF_HOME"),
        (LocalEntryNotFoundError("cannot find it"), 4, "not in the cache, and the hub is out of reach"),
    ]
    for error, code, remedy in failures:
        told = _explain("hf:us/mini", error)
        assert (told.exit_code, remedy in told.remedy) == (code, True)
    monkeypatch.setenv("HF_TOKEN", "sesame-5178")
    told = _explain("hf:a/b", OSError("401 for sesame-5178 at https://anna:pw@hub/x?token=abc"))
    assert told.what == "hf:a/b cannot be had (401 for [key] at https://[key]@hub/x?token=[key])"
    assert "sesame" not in "".join(traceback.format_exception(told))


@needs_model
@needs_embedder
def test_what_a_model_is_for_stands_in_its_metadata(tmp_path: Path) -> None:
    (tmp_path / "torn.gguf").write_bytes(b"GGUF")
    assert detect_kind(find_bundled_gguf()) == "language"
    assert detect_kind(convert_to_gguf(find_weights(), QUERY_ENCODER_BASE)) == "embedding"
    assert detect_kind(tmp_path / "torn.gguf") == "unreadable"
    assert _kind_from_metadata({"general.architecture": "qwen3", "qwen3.pooling_type": "3"}) == "embedding"
    assert _kind_from_metadata({"general.architecture": "bert", "bert.pooling_type": "4"}) == "other"


FILES = ["m-F16.gguf", "m-Q4_K_M.gguf", "m-Q8_0.gguf", "m-iQ4_K_S.gguf"]


def test_the_file_that_is_meant() -> None:
    assert choose_file(FILES, "us/m", None) == "m-Q4_K_M.gguf"
    assert choose_file(FILES, "us/m", "q8_0") == "m-Q8_0.gguf"
    assert choose_file(["a-f16.gguf", "b.gguf"], "us/m", None) == "a-f16.gguf"
    with pytest.raises(UsageError, match=r"no single file that is meant \(.gguf files: "):
        choose_file(["a.gguf", "b.gguf"], "us/m", None)
    for name in ("hf:", "hf:user", "hf:user/repo/file.bin", "hf:../x/y z", "hf:a/b:"):
        with pytest.raises(UsageError, match="is not hf:user/repo"):
            fetch(name)
