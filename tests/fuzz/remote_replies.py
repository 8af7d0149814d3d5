"""What a server may reply instead of an answer: any bytes, many of them, packed, slowly, and with our key in them."""

import gzip
import json
from contextlib import suppress
from random import Random
from typing import Any

from agent.models.openai_server import open_server_model
from agent.models.protocol import Conversation, Task
from schemas.errors import ConvagentError
from schemas.records import Call, Message
from tests.stand_in import GONE, StandIn, fault, said
from tests.test_remote import KEY, Question

TALK = Conversation("", (Message("user", "Which bread is free of gluten?"),))
STATUSES = (200, 200, 200, 204, 301, 400, 401, 404, 408, 422, 429, 500, 503)


def try_reply(address: str, number: int) -> list[str]:
    """Ask a stand-in that replies badly. What is wrong with how that ended; any error but ours is raised."""
    random, calls, shown = Random(number), list[Call](), list[str]()  # noqa: S311
    StandIn.replies = [_choose_reply(random) for _ in range(12)]
    StandIn.models = (200, {"data": [{"id": random.choice(("big", KEY, "\x1b[2J"))}]})
    told = ""
    try:
        model = open_server_model(address, calls.append)
        kind: Any = random.choice((str, Question))
        with suppress(AttributeError):
            told = str(model.ask(TALK, Task("hyde"), kind, random.choice((None, shown.append))))
        model.close()
    except ConvagentError as error:
        told = str(error)
    everything = "".join((told, repr(calls), repr(shown)))
    return [what for what in (KEY, "\x1b") if what in everything]


def _choose_reply(random: Random) -> Any:
    """One of many: a function that sends it, or what the stand-in understands."""
    ways: Any = (
        lambda _: GONE,
        lambda _: None,
        lambda _: lambda stand_in: stand_in.trickle(in_header=random.random() < 0.5),
        lambda rng: lambda stand_in: stand_in.send_packed(_choose_packed(rng), rng.choice(("gzip", "deflate", "br"))),
        lambda rng: (rng.choice(STATUSES), rng.randbytes(rng.randrange(200))),
        lambda rng: (rng.choice(STATUSES), fault(f"your key {KEY} \x1b[2J is http://a:{KEY}@b/?key={KEY}")),
        lambda rng: (200, said(f"I know {KEY}", rng.choice(("stop", "length")))),
        lambda rng: (200, _break(json.dumps(said('{"text": "Rice bread."}')).encode(), rng)),
        lambda rng: (200, rng.choice((b"[" * 100_000, b"9" * 5000, b'{"choices": ' * 5000, b"\xff\xfe{}"))),
        lambda rng: (rng.choice((200, 500)), b" " * rng.choice((1 << 20, (1 << 24) + 1))),
    )
    return random.choice(ways)(random)


def _choose_packed(random: Random) -> bytes:
    whole = gzip.compress(random.choice((b"[" * (1 << 25), json.dumps(said("Rice.")).encode(), b"")))
    return random.choice((whole, whole[: len(whole) // 2], _break(whole, random), random.randbytes(50)))


def _break(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(random.randrange(1, 4)):
        changed[random.randrange(len(changed))] = random.randrange(256)
    return bytes(changed)
