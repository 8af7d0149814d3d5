"""Teach SmolLM2-135M to call the passage search: a LoRA adapter that llama.cpp loads.

    python -m training.rewriter ../shared/data [-o FILE] [--steps N] [--seed N]

It reads the questions before, the beginning of the last reply and the utterance, and calls the search with the question
that stands alone, or nothing where nothing is asked. Only rewrites that the program would not refuse are learned.
"""

import random
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import msgspec

from agent.models.bundled import ADAPTERS, REWRITER
from agent.turn.query_rewriting import CallArguments, NoCall, SearchCall, compose_search_prompt, is_faithful
from training.loop import Schedule, read_arguments
from training.rewrites import (
    RewriteExample,
    read_conversations,
    read_remarks,
    read_rewrites,
    resolve_histories,
)
from training.smollm2 import Item, TaughtSmolLM2

HERE = Path(__file__).parent
CONVERSATIONS, REMARKS = HERE / "conversations.txt", HERE / "remarks.txt"
MAX_TOKENS = 320  # of a prompt; the end is kept


def read_examples(data: Path) -> list[RewriteExample]:
    """Those of the tracks and ours, those also after histories whose questions stand alone, and remarks."""
    of_tracks = [each for each in read_rewrites(data) if is_faithful(each.rewrite, each.messages)]
    ours = read_conversations(CONVERSATIONS, held_out=False)
    resolved = [*islice(resolve_histories(of_tracks), 0, None, 2), *resolve_histories(ours)]
    return [*of_tracks, *ours, *resolved, *read_remarks(REMARKS, [*of_tracks, *ours], random.Random(0))]


def make_items(model: TaughtSmolLM2, examples: Sequence[RewriteExample]) -> list[Item]:
    """Examples as tokens."""
    return [
        model.make_item(compose_search_prompt(each.messages), write_call(each.rewrite), MAX_TOKENS) for each in examples
    ]


def write_call(question: str) -> str:
    """The call as it is taught: of the search for a question, of nothing without one."""
    call = SearchCall(CallArguments(question)) if question else NoCall()
    return msgspec.json.encode(call).decode()


def main() -> None:
    asked = read_arguments(__doc__ or "", ADAPTERS[REWRITER], Schedule(600, 5e-4))
    model = TaughtSmolLM2()
    items = make_items(model, read_examples(asked.data))
    print(f"{len(items)} examples", flush=True)
    model.teach(lambda _order: items, Schedule(asked.steps, asked.rate, asked.seed), asked.output)


if __name__ == "__main__":
    main()
