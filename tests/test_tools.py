"""The recipes of `docs/tools.md`, run as they stand: configurations by the SDK's client, programs by themselves."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client, StdioServerParameters

from tests.conftest import EXAMPLES, PATIENCE, ROOT
from tests.mcp_clients import JAM, NO_MODELS, connect, environment, on_port, talk
from tests.serving import Server, serving_source

PAGE = (ROOT / "docs" / "tools.md").read_text()
DOCUMENTS = EXAMPLES / "documents"
PROGRAM, FOLDER = "/home/me/.local/bin/convagent", "/home/me/notes"
TOOLS = {"search_passages", "read_passage", "list_documents", "ask", "about_me"}
JAM_PASSAGE = "recipes/plum-jam.txt:1-12"
LLM = str(Path(sys.executable).with_name("llm"))


def find_blocks(heading: str, language: str) -> list[str]:
    """The blocks of a language under a heading of the page."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```", section, re.MULTILINE | re.DOTALL)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """What the recipes call `convagent`: this tree's, without models."""
    path = tmp_path / "convagent"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT}/cli.py" "$@" {" ".join(NO_MODELS)}\n')
    path.chmod(0o755)
    return path


def fill_in(block: str, program: Path) -> str:
    """A block with the paths of this machine."""
    assert PROGRAM in block
    assert FOLDER in block
    return block.replace(PROGRAM, str(program)).replace(FOLDER, str(DOCUMENTS))


async def list_and_search(client: Client) -> tuple[set[str], str]:
    """The names of the tools, and the best passage for a question."""
    names = {tool.name for tool in (await client.list_tools()).tools}
    found = await client.call_tool("search_passages", {"query": JAM})
    assert found.structured_content
    return names, found.structured_content["passages"][0]["passage"]["id"]


@pytest.mark.parametrize(("heading", "key"), [("Claude Desktop", "mcpServers"), ("VS Code", "servers")])
def test_a_configuration_starts_the_server(heading: str, key: str, program: Path, tmp_path: Path) -> None:
    (block,) = find_blocks(heading, "json")
    (entry,) = json.loads(fill_in(block, program))[key].values()
    assert entry.pop("type", "stdio") == "stdio"
    server = StdioServerParameters(**entry, env=environment(tmp_path))
    assert talk(list_and_search, server) == (TOOLS, JAM_PASSAGE)


def test_the_configuration_over_http_reaches_the_server(tmp_path: Path) -> None:
    (block,) = find_blocks("Over HTTP", "json")
    configuration = json.loads(block)
    (entry,), (asked,) = configuration["servers"].values(), configuration["inputs"]
    with on_port(tmp_path, "--docs", DOCUMENTS, *NO_MODELS) as running:
        url = entry["url"].replace(":8765", f":{httpx.URL(running.url).port}")
        token = entry["headers"]["Authorization"].replace(f"${{input:{asked['id']}}}", running.token)
        assert entry["type"] == "http"
        assert talk(list_and_search, connect(url, token)) == (TOOLS, JAM_PASSAGE)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """`convagent serve` over the example documents."""
    with serving_source("--docs", DOCUMENTS, tmp_path_factory.mktemp("data"), *NO_MODELS) as running:
        yield running


@pytest.mark.skipif(not Path(LLM).exists(), reason="llm is not installed")
def test_llm_asks_and_goes_on(server: Server, tmp_path: Path) -> None:
    (settings,) = find_blocks("llm", "yaml")
    address = f"{server.address}v1"
    (tmp_path / "extra-openai-models.yaml").write_text(settings.replace("http://127.0.0.1:8080/v1", address))
    asked = find_blocks("llm", "console")[0].replace("$(cat ~/.local/share/convagent/serve-token)", server.token)
    calls = re.findall(r"^\$ llm (.+)$", asked, re.MULTILINE)
    env = environment(tmp_path) | {"LLM_USER_PATH": str(tmp_path)}
    printed = []
    for call in [*calls, f'-m documents --no-stream "{JAM}"']:
        command = [LLM, *shlex.split(call)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE, check=True)
        printed.append(done.stdout)
    assert len(printed) == 4
    assert "two years" in printed[1]
    assert "eleven small jars. [1]" in printed[2]
    assert "two years" in printed[3]


# What Open WebUI 0.12.4 sends (backend/open_webui/routers/openai.py and tasks.py of its release)
MESSAGES: dict[str, Any] = {"model": "convagent", "messages": [{"role": "user", "content": JAM}]}
STREAM = MESSAGES | {"stream": True, "stream_options": {"include_usage": True}}
TITLE = MESSAGES | {"stream": False, "max_tokens": 1000}
FUNCTION = {"type": "function", "function": {"name": "search_notes", "parameters": {"type": "object"}}}


def test_what_open_webui_sends_is_answered_or_refused(server: Server) -> None:
    with server.open_client() as client:
        listed = client.get("/v1/models").json()
        streamed, titled, refused = (
            client.post("/v1/chat/completions", json=body) for body in (STREAM, TITLE, STREAM | {"tools": [FUNCTION]})
        )
    assert [model["id"] for model in listed["data"]] == ["convagent"]
    lines = re.findall("^data: (.*)", streamed.text, re.MULTILINE)
    assert lines[-1] == "[DONE]"
    chunks = [json.loads(line) for line in lines[:-1]]
    text = "".join(choice["delta"].get("content", "") for chunk in chunks for choice in chunk["choices"])
    assert "two years" in text
    assert chunks[-1]["usage"]["total_tokens"] >= 0
    assert titled.json()["choices"][0]["message"]["content"]
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "tools")
