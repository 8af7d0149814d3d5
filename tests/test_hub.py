"""Models from a hub: a stand-in on loopback serves a real GGUF as the hub would."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from agent.embedders.minilm import converted, embedded_weights
from agent.hub import chosen, fetched
from agent.llm.embedded import sha256
from indexes.passages import PassageIndex
from schemas.errors import UsageError
from tests.conftest import needs_embedder
from tests.test_cli import convagent

FILE = "mini-F16.gguf"


class Hub(BaseHTTPRequestHandler):
    """One repository, us/mini, with one file."""

    gguf: Path
    asked: list[str]

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        type(self).asked.append(f"{self.command} {self.path}")
        if self.path.startswith("/api/models/us/mini/tree/main"):
            listing = [{"type": "file", "path": FILE, "size": self.gguf.stat().st_size, "oid": "0" * 40}]
            return self._send(json.dumps(listing).encode(), "application/json", body=body)
        if self.path == f"/us/mini/resolve/main/{FILE}":
            return self._send(self.gguf.read_bytes(), "application/octet-stream", body=body)
        return self.send_error(404)

    def _send(self, data: bytes, kind: str, *, body: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", '"' + "a" * 64 + '"')
        self.send_header("X-Repo-Commit", "b" * 40)
        self.end_headers()
        if body:
            self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def hub() -> Iterator[str]:
    source = embedded_weights()
    Hub.gguf, Hub.asked = converted(source, sha256(source)), []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@needs_embedder
def test_a_model_is_downloaded_once_and_then_used_offline(
    hub: str, tmp_path: Path, example_index: PassageIndex
) -> None:
    def search(name: str, **environment: str) -> tuple[int, str]:
        home = {"HF_HOME": str(tmp_path / "hf"), "HF_HUB_DISABLE_XET": "1", "CONVAGENT_CACHE": str(tmp_path / "cache")}
        command = ("search", example_index.directory, "musical instrument of brass", "-k", "1", "--embedder", name)
        result = convagent(*command, cwd=tmp_path, **home, **environment)
        return result.returncode, result.stdout + result.stderr

    code, said = search("hf:us/mini", HF_ENDPOINT=hub)
    assert code == 0, said
    downloads = [path for path in Hub.asked if path.startswith("GET /us/mini/resolve")]
    assert len(downloads) == 1
    again, text = search(f"hf:us/mini/{FILE}", HF_ENDPOINT=hub, HF_HUB_OFFLINE="1")
    assert (again, text) == (code, said)
    assert search("hf:us/mini:f16", HF_ENDPOINT=hub, HF_HUB_OFFLINE="1") == (code, said)
    assert [path for path in Hub.asked if path.startswith("GET /us/mini/resolve")] == downloads
    code, text = search("hf:us/other", HF_ENDPOINT=hub)
    assert code == 4
    assert "hf:us/other cannot be had" in text
    code, text = search("hf:us/mini:q2", HF_ENDPOINT=hub)
    assert code == 2
    assert f".gguf files: {FILE}" in text


FILES = ["m-F16.gguf", "m-Q4_K_M.gguf", "m-Q8_0.gguf", "m-iQ4_K_S.gguf"]


@pytest.mark.parametrize(
    ("files", "quant", "file"),
    [
        (FILES, None, "m-Q4_K_M.gguf"),
        (FILES, "q8_0", "m-Q8_0.gguf"),
        (FILES, "F16", "m-F16.gguf"),
        (["only.gguf"], None, "only.gguf"),
        (["a-f16.gguf", "b.gguf"], None, "a-f16.gguf"),
    ],
)
def test_the_file_that_is_meant(files: list[str], quant: str | None, file: str) -> None:
    assert chosen(files, "us/m", quant) == file


@pytest.mark.parametrize(("files", "quant"), [(FILES, "q2"), ([], None), (["a.gguf", "b.gguf"], None)])
def test_what_is_not_meant_clearly_is_asked_for(files: list[str], quant: str | None) -> None:
    with pytest.raises(UsageError, match=r"no single file that is meant \(.gguf files: "):
        chosen(files, "us/m", quant)


@pytest.mark.parametrize("name", ["hf:", "hf:user", "hf:user/repo/file.bin", "hf:../x/y z", "hf:a/b:"])
def test_a_name_of_another_form_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="is not hf:user/repo"):
        fetched(name)
