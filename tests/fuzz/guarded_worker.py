"""The reading process of the product, which ends with code 99 where what it reads makes it reach for anything else.

No socket, no look-up, no program but Tesseract, no file but those of Python, its libraries, and the process's own
temporary ones. What it reached for is told in the file `convagent-reached` of its directory's parent.
"""

import os
import sys
from pathlib import Path
from typing import Any

HOME = sys.argv[2]
CODE = 99
TOLD_IN = "convagent-reached"
ALLOWED = tuple(
    {os.path.realpath(place) for place in (*sys.path, sys.prefix, sys.base_prefix, HOME) if place}
    | {"/dev/null", "/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu", "/etc/mime.types"}
    | {"/etc/localtime", "/usr/share/zoneinfo", "/etc/apache2/mime.types", "/etc/httpd", "/usr/local/etc/mime.types"}
)
STARTS = ("os.system", "os.exec", "os.posix_spawn", "os.startfile", "urllib.Request", "webbrowser.open")
FILES = ("open", "os.remove", "os.rename", "os.mkdir", "os.listdir", "os.scandir", "shutil.rmtree")
PROGRAMS = {"tesseract"}


def guard(event: str, arguments: Any) -> None:
    """The audit hook."""
    path = arguments[0] if event in FILES else None
    reaches = [
        event.startswith("socket.") and not is_harmless(event, arguments),
        event in STARTS,
        event == "subprocess.Popen" and Path(str(arguments[1][0])).name not in PROGRAMS,
        isinstance(path, str | bytes | os.PathLike) and not is_own(os.fsdecode(path)),
    ]
    if any(reaches):
        stop(event, arguments)


def is_harmless(event: str, arguments: Any) -> bool:
    """Whether nobody is reached: urllib3, which spaCy imports, looks whether there is IPv6 at all."""
    return event in ("socket.gethostname", "socket.__new__") or (event == "socket.bind" and arguments[1] == ("::1", 0))


def is_own(path: str) -> bool:
    """Whether the process may open it."""
    if not path.startswith("/") or path in ("/tmp", "/etc/ld.so.cache"):  # noqa: S108
        return not path.startswith("..") and "passwd" not in path
    return os.path.realpath(path).startswith(ALLOWED)


def stop(event: str, arguments: Any) -> None:
    """Tell what was reached for, and end."""
    told = os.open(Path(HOME).with_name(TOLD_IN), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(told, f"{event} {arguments!r}\n".encode("utf-8", "replace"))
    os._exit(CODE)


def main() -> None:
    """Read documents behind the hook."""
    from indexes.documents.isolation import worker

    guarding = [False]

    def hook(event: str, arguments: Any) -> None:
        if not guarding[0]:
            guarding[0] = True  # what the guard itself opens is its own affair
            try:
                guard(event, arguments)
            finally:
                guarding[0] = False

    sys.addaudithook(hook)
    worker.main()


if __name__ == "__main__":
    main()
