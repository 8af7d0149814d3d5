"""The documents: what they name exists, what they print is printed, and the README stays short."""

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import cli
from agent.models import learned
from tests.conftest import EXAMPLES, ROOT, needs_embedder, needs_model, own_settings_left_out

README = ROOT / "README.md"
LEARNED = Path(learned.__file__).parent
CARDS = sorted(LEARNED.glob("*.md"))
PAGES = [
    README,
    *(ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
    *ROOT.glob("docs/*.md"),
    *CARDS,
]
DECISIONS = sorted(ROOT.glob("docs/adr/*.md"))
LINK = re.compile(r"\]\(([^)\s]+)\)")
TOP_LEVEL = "agent|indexes|prompts|schemas|tests|benchmarks|training|examples|docs"
WEIGHTS = {".gguf", ".json", ".safetensors", ".npz", ".npy"}
MAX_LEARNED_BYTES = 20_000_000  # of a file
TRAINING = re.compile(r"^\$ (?:\S+/)?python -m training\.(\w+)\b", re.MULTILINE)
PATH = re.compile(rf"(?<![\w./-])((?:{TOP_LEVEL})/[\w./*-]*[\w*/])")
MODULE = re.compile(r"^\s*from ((?:agent|indexes|schemas|prompts)[\w.]*) import (\w+)", re.MULTILINE)


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def find_anchors(page: Path) -> set[str]:
    """What a link can point at: GitHub's ids of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def find_broken_links(page: Path) -> list[str]:
    """The relative links of a page that lead nowhere, also those to a heading that is not there."""
    broken = []
    for link in LINK.findall(page.read_text()):
        target, _, heading = link.partition("#")
        file = (page.parent / target).resolve() if target else page
        if "://" in link:
            continue
        if not file.exists() or (heading and file.suffix == ".md" and heading not in find_anchors(file)):
            broken.append(link)
    return broken


def test_the_readme_is_short() -> None:
    text = README.read_text()
    assert len(text.splitlines()) <= 90
    assert len(text.split()) <= 800


@pytest.mark.parametrize("page", [*PAGES, *DECISIONS], ids=page_name)
def test_every_link_leads_somewhere(page: Path) -> None:
    assert find_broken_links(page) == []


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_path_that_is_named_exists(page: Path) -> None:
    missing = [path for path in PATH.findall(page.read_text()) if not list(ROOT.glob(path.rstrip("/")))]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_import_that_is_shown_works(page: Path) -> None:
    for module, attribute in MODULE.findall(page.read_text()):
        assert hasattr(__import__(module, fromlist=[attribute]), attribute), f"{module}.{attribute}"


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_command_that_is_shown_can_be_parsed(page: Path) -> None:
    """Commands and long flags of each `$ convagent ...`."""
    for line in re.findall(r"^\$ (?:.*\| )?convagent (.+?)(?:\s+#.*)?$", page.read_text(), re.MULTILINE):
        flags = re.findall(r"(?<!\S)--[a-z][a-z-]*", line)
        assert [flag for flag in flags if flag not in list_flags(line.split())] == [], line


def list_flags(words: Sequence[str]) -> set[str]:
    """The flags of the command that these words begin with."""
    command: Any = get_command(cli.app)
    for word in words:
        if not hasattr(command, "commands"):
            break
        command = command.commands[word]
    return {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}


def test_what_was_learned_has_cards_and_is_small() -> None:
    """Each file says where it comes from and which command makes it again."""
    weights = [path for path in LEARNED.iterdir() if path.suffix in WEIGHTS]
    assert [path.with_suffix(".md") for path in sorted(weights)] == CARDS
    assert max(path.stat().st_size for path in weights) <= MAX_LEARNED_BYTES
    for card in CARDS:
        text = card.read_text()
        assert "licence" in text, card.name
        assert [name for name in TRAINING.findall(text) if (ROOT / "training" / f"{name}.py").exists()], card.name


@needs_model
@needs_embedder
@pytest.mark.model
@pytest.mark.story
def test_the_conversation_in_the_readme_is_what_is_printed(tmp_path: Path) -> None:
    """Each answer up to its first citation; what follows it may differ from processor to processor."""
    block = README.read_text().split("convagent chat --docs examples/documents\n")[1].split("```")[0]
    questions = re.findall(r"^> (.+)$", block, re.MULTILINE)
    command = [sys.executable, f"{ROOT}/cli.py", "chat", "--docs", f"{EXAMPLES}/documents", "--incognito"]
    env = own_settings_left_out() | {"CONVAGENT_DATA": str(tmp_path)}
    asked = "".join(f"{question}\n" for question in questions)
    printed = subprocess.run(command, input=asked, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert printed.returncode == 0, printed.stderr
    assert read_openings(block) == read_openings(printed.stdout)


def read_openings(shown: str) -> list[str]:
    """What each answer says after the line of its search, up to its first citation."""
    return [
        " ".join(answer.split(" [1]")[0].split())
        for answer in re.split(r"^searched for .*\n", shown, flags=re.MULTILINE)[1:]
    ]
