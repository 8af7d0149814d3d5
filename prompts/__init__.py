"""One text file per step. Edit them without opening Python; a misspelt variable is an error.

A file is a Jinja template: a comment that says what the step is for, then the instruction that follows the last
utterance. A line that begins with `=>` is the beginning of the reply, given to the model for free. `system.txt` opens
every prompt. Set `CONVAGENT_PROMPTS` to a directory to use files of your own; those that it lacks are taken from here.
"""

import hashlib
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from schemas.errors import InvalidInputError, MissingError
from schemas.records import Message

HERE = Path(__file__).parent
OPENING = "=>"
NO_RUN = frozenset({"assign", "tools", "result"})  # steps that no run has


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered prompt: what follows the last utterance, and how the reply begins."""

    instruction: str
    opening: str = ""


def render(step: str, **variables: object) -> Prompt:
    """The prompt of a step. Raises `InvalidInputError` naming file and variable when the template does not render."""
    from jinja2 import TemplateError

    lines = file_of(step).read_text(encoding="utf-8").splitlines()  # told apart here, whatever the variables hold
    instruction = "\n".join(line for line in lines if not line.startswith(OPENING))
    opening = next((line.removeprefix(OPENING) for line in lines if line.startswith(OPENING)), "")
    try:
        instruction, opening = (_environment().from_string(p).render(**variables) for p in (instruction, opening))
    except TemplateError as error:
        raise InvalidInputError(f"does not render ({error})", where=str(file_of(step))) from error
    return Prompt(instruction.strip(), opening.strip(" "))


def examples(step: str) -> tuple[Message, ...]:
    """Exchanges that show how a step is done: what `step_example_1.txt` and so on say, with the reply at the arrow."""
    shown = [render(name) for name in steps() if name.startswith(f"{step}_example")]
    return tuple(
        each for one in shown for each in (Message("user", one.instruction), Message("assistant", one.opening))
    )


def steps() -> list[str]:
    return sorted(path.stem for path in HERE.glob("*.txt"))


def file_of(step: str) -> Path:
    """The file of a step's prompt: the user's own, else ours. The error lists the steps."""
    own = os.environ.get("CONVAGENT_PROMPTS")
    for folder in ([Path(own)] if own else []) + [HERE]:
        if (path := folder / f"{step}.txt").is_file():
            return path
    raise MissingError(f"there is no prompt {step!r} (available: {', '.join(steps())})")


def digest() -> str:
    """SHA-256 over the prompts that a run uses: part of what decides it."""
    digests = (hashlib.sha256(file_of(step).read_bytes()).hexdigest() for step in steps() if step not in NO_RUN)
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()


@cache
def _environment() -> Any:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import SandboxedEnvironment

    return SandboxedEnvironment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
