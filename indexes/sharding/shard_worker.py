"""The process of one shard: it opens the directory that it is started with, and replies to what it is asked.

Questions come on standard input and replies go to standard output (`indexes/sharding/shard.py`); the end of the input
is its end.
"""

import os
import sys
from pathlib import Path
from typing import Any

from indexes.sharding.shard import Failure, Shard, read_question, write_reply


def main() -> None:
    directory, shard = Path(sys.argv[1]), None
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # for whatever else is printed
    while True:
        try:
            question, arguments = read_question(sys.stdin.buffer)
        except EOFError:
            return
        reply: Any
        try:
            shard = shard if shard is not None else Shard(directory)
            reply = shard.reply(question, arguments)
        except Exception as error:
            reply = Failure.of(error, directory)
        write_reply(replies, question, reply)


if __name__ == "__main__":
    main()
