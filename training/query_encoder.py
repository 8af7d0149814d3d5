"""Teach all-MiniLM-L6-v2 to read a turn with its conversation: where the standalone question lies, and its words.

    python -m training.query_encoder ../shared/data [-o FILE] [--steps N] [--seed N]

The vector of the conversation is drawn to where the base model puts the rewrite, a frozen teacher, and away from
the other turns of the batch, most of them of the same conversation (ConvDR: Yu et al., SIGIR 2021). Each word that the
utterance does not have is judged by whether the rewrite has it (QuReTeC: Voskarides et al., SIGIR 2020). Learned from
the turns as they are, after histories that stand alone, and after conversations of something else.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor, nn

from agent.models.embedding.query_encoder import WORDS, split_words
from agent.models.learned import QUERY_ENCODER
from agent.turn.query_rewriting import compose_conversation
from indexes.text.analysis import extract_stems, load_stop_words
from training.loop import Schedule, endless_batches, pad, read_arguments, train
from training.minilm import WIDTH, ChangedMiniLM, pool, save_changes
from training.rewrites import RewriteExample, read_rewrites, resolve_histories, switch_topics, to_query

RANK = 32
BATCH, NEIGHBOURS = 16, 4  # texts at once; how many of them are of one conversation
BATCHES_SORTED = 8  # put together from texts of about one length
TOKENS = 192  # read of a conversation, and of a rewrite
COSINE, CONTRAST, WORD = 4.0, 0.5, 0.5  # what the losses weigh
TEMPERATURE = 1 / 20
SAME = 0.98  # cosine of rewrites that are no other question
PRESENT = 3.0  # times as much as a word that the rewrite does not have, one counts that it has
UNJUDGED = -100.0


@dataclass(frozen=True, slots=True)
class Item:
    """An example as numbers."""

    ids: list[int]
    labels: list[float]  # of each token: 1 or 0 where a word begins that is judged, else `UNJUDGED`
    target: Tensor  # the unit vector of the rewrite
    conversation: str


class QueryEncoder(nn.Module):
    """The model and its judge of words."""

    def __init__(self) -> None:
        super().__init__()
        self.minilm = ChangedMiniLM(RANK)
        self.words = nn.Linear(WIDTH, 1)

    def loss(self, batch: Sequence[Item]) -> Tensor:
        ids, labels = pad([item.ids for item in batch]).long(), pad([item.labels for item in batch], UNJUDGED)
        targets = torch.stack([item.target for item in batch])
        states = self.minilm.states(ids)
        vectors = pool(states, ids)
        same = (targets @ targets.T > SAME).float()
        wanted = same / same.sum(-1, keepdim=True)
        contrast = -(wanted * (vectors @ targets.T / TEMPERATURE).log_softmax(-1)).sum(-1).mean()
        judged = labels >= 0
        odds, present = self.words(states).squeeze(-1)[judged], labels[judged]
        word = nn.functional.binary_cross_entropy_with_logits(odds, present, pos_weight=torch.tensor(PRESENT))
        distance = (1 - (vectors * targets).sum(-1)).mean()
        return COSINE * distance + CONTRAST * contrast + (WORD * word if len(present) else 0)


def make_items(examples: Sequence[RewriteExample], model: ChangedMiniLM) -> list[Item]:
    """The examples as numbers."""
    targets = model.embed_unchanged([example.rewrite for example in examples], TOKENS)
    return [_make_item(example, target, model) for example, target in zip(examples, targets, strict=True)]


def _make_item(example: RewriteExample, target: Tensor, model: ChangedMiniLM) -> Item:
    text = compose_conversation(to_query(example))
    words, starts, ids = split_words(
        text, lambda word: model.tokenizer(word, add_special_tokens=False)["input_ids"], TOKENS
    )
    said, wanted = set(extract_stems(example.utterance)), set(extract_stems(example.rewrite))
    labels = [UNJUDGED] * (len(ids) + 2)
    for word, start in zip(words, starts, strict=False):
        stems = set(extract_stems(word))
        if stems - said and word.lower() not in load_stop_words():
            labels[start] = float(bool(stems & wanted))
    return Item(
        [model.tokenizer.cls_token_id, *ids, model.tokenizer.sep_token_id], labels, target, example.conversation
    )


def make_batches(items: Sequence[Item], order: random.Random) -> list[list[Item]]:
    """All items once. A few of each batch are of one conversation: they are what a turn is easily taken for."""
    conversations: dict[str, list[Item]] = {}
    for item in items:
        conversations.setdefault(item.conversation, []).append(item)
    groups = []
    for members in conversations.values():
        order.shuffle(members)
        groups += [members[start : start + NEIGHBOURS] for start in range(0, len(members), NEIGHBOURS)]
    order.shuffle(groups)
    size = BATCH // NEIGHBOURS * BATCHES_SORTED
    sorted_groups = chain.from_iterable(
        sorted(groups[start : start + size], key=lambda group: max(len(item.ids) for item in group))
        for start in range(0, len(groups), size)
    )
    flat = list(chain.from_iterable(sorted_groups))
    batches = [flat[start : start + BATCH] for start in range(0, len(flat) - BATCH + 1, BATCH)]
    order.shuffle(batches)
    return batches


def main() -> None:
    asked = read_arguments(__doc__ or "", QUERY_ENCODER, Schedule(600, 1e-3))
    model, found = QueryEncoder(), read_rewrites(asked.data)
    items = make_items(
        [*found, *resolve_histories(found), *switch_topics(found, random.Random(asked.seed))], model.minilm
    )
    print(f"{len(items)} examples", flush=True)
    batches = endless_batches(lambda order: make_batches(items, order), asked.seed)
    checkpoint = asked.output.with_suffix(".checkpoint")
    train(model, batches, model.loss, Schedule(asked.steps, asked.rate, asked.seed), checkpoint)
    save_changes(model.minilm, {WORDS: model.words}, asked.output)
    checkpoint.unlink()


if __name__ == "__main__":
    main()
