"""The command line within this process: what it says and how it ends, without what it costs a process to begin."""

import os
from contextlib import chdir
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.conftest import SESSION_SETTINGS
from tests.fuzz.bench import call


def convagent(*arguments: str | Path, cwd: Path | None = None, text: str = "", **more: str) -> CompletedProcess[str]:
    """As a process of its own would end in that directory, with `text` on its stdin and no settings of a person's."""
    own = [name for name in os.environ if name.startswith("CONVAGENT_") and name not in SESSION_SETTINGS]
    with pytest.MonkeyPatch.context() as patch, chdir(cwd or Path.cwd()):
        for name in own:
            patch.delenv(name)
        for name, value in more.items():
            patch.setenv(name, value)
        ended = call(*arguments, typed=text)
    return CompletedProcess(arguments, ended.code, ended.out, ended.err + ended.crash)
