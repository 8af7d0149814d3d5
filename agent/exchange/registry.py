"""The forms for other tools that a trace can be written in. Their modules are imported when one is asked for."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from schemas.records import RunInfo, TurnResult

EXCHANGE_NAMES = ("autojudge", "nuggetizer", "ragnarok", "trec")


def encode_turns(form: str, answered: "Iterable[TurnResult]", info: "RunInfo") -> Iterator[bytes]:
    """The answered turns in that form, piece by piece. Raises `InvalidInputError` for what it cannot express."""
    from agent.exchange import answer_files, candidates, trec

    encode = {
        "autojudge": answer_files.encode_autojudge,
        "nuggetizer": candidates.encode_turn,
        "ragnarok": answer_files.encode_ragnarok,
        "trec": trec.encode_turn,
    }[form]
    return (encode(turn, info) for turn in answered)
