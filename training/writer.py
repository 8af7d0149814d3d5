"""Teach SmolLM2-135M to answer in sentences made of those that it is given: a LoRA adapter that llama.cpp loads.

    python -m training.writer ../shared/data [-o FILE] [--steps N] [--seed N]

Learned from replies that were written for this, and as many that clean marked sentences, spoilt anew each time through.
"""

import random
from collections.abc import Sequence

from agent.models.bundled import ADAPTERS, WRITER
from training.loop import Schedule, read_arguments
from training.replies import read_cleaning, read_written_replies
from training.smollm2 import Item, TaughtSmolLM2

MAX_TOKENS = 560  # of a prompt; the end is kept
CLEANING = 0.5  # as many again as were written


def main() -> None:
    asked = read_arguments(__doc__ or "", ADAPTERS[WRITER], Schedule(360, 5e-4))
    model = TaughtSmolLM2()
    written = [model.make_item(each.prompt, each.reply, MAX_TOKENS) for each in read_written_replies()]
    print(f"{len(written)} written", flush=True)

    def compose(order: random.Random) -> Sequence[Item]:
        cleaned = order.sample(read_cleaning(asked.data, order), int(CLEANING * len(written)))
        return [*written, *(model.make_item(each.prompt, each.reply, MAX_TOKENS) for each in cleaned)]

    model.teach(compose, Schedule(asked.steps, asked.rate, asked.seed), asked.output)


if __name__ == "__main__":
    main()
