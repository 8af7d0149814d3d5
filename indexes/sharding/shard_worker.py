"""The process of one shard: it opens the directory that it is started with, and replies to what it is asked.

Questions come on standard input and replies go to standard output, pickled; the end of the input is its end.
"""

import os
import pickle
import sys
from pathlib import Path
from typing import Any

from indexes.sharding.shard_transport import open_shard
from schemas.errors import ConvagentError, RunError


def main() -> None:
    directory, shard = Path(sys.argv[1]), None
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # for whatever else is printed
    while True:
        try:
            question = pickle.load(sys.stdin.buffer)  # noqa: S301  (of the process that started this one)
        except EOFError:
            return
        reply: Any
        try:
            shard = shard if shard is not None else open_shard(directory)
            reply = question(shard)
        except ConvagentError as error:
            reply = error
        except Exception as error:
            reply = RunError(f"this shard failed ({type(error).__name__}: {error})", where=str(directory))
        pickle.dump(reply, replies)
        replies.flush()


if __name__ == "__main__":
    main()
