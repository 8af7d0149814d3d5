"""Teach SmolLM2-135M to say a turn so that it stands alone: a LoRA adapter that llama.cpp loads.

    python -m training.rewriter ../shared/data [-o FILE] [--steps N] [--seed N]

Learned from rewrites after the questions before, the beginning of the last reply, and the utterance; half of the
turns also after questions that stand alone. First turns are not learned: they stand as they are.
"""

from itertools import islice

from agent.models.bundled import ADAPTERS, REWRITER
from agent.turn.query_rewriting import compose_rewriter_prompt
from training.loop import Schedule, read_arguments
from training.rewrites import read_rewrites, resolve_histories, to_query
from training.smollm2 import TaughtSmolLM2

MAX_TOKENS = 320  # of a prompt; the end is kept


def main() -> None:
    asked = read_arguments(__doc__ or "", ADAPTERS[REWRITER], Schedule(450, 5e-4))
    model = TaughtSmolLM2()
    found = [example for example in read_rewrites(asked.data) if example.history]
    items = [
        model.make_item(compose_rewriter_prompt(to_query(each)), each.rewrite, MAX_TOKENS)
        for each in [*found, *islice(resolve_histories(found), 0, None, 2)]
    ]
    print(f"{len(items)} examples", flush=True)
    model.teach(lambda _order: items, Schedule(asked.steps, asked.rate, asked.seed), asked.output)


if __name__ == "__main__":
    main()
