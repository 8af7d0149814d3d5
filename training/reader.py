"""Teach all-MiniLM-L6-v2 or multilingual-e5-small to read: where an answer begins and ends, or that it is not there.

    python -m training.reader ../shared/data [-o FILE] [--steps N] [--rate R] [--seed N] [--start FILE] [--multilingual]

Question and passage are one text; two numbers on top of each token say where an answer begins and ends, and the first
token stands for "not here" (BERT: Devlin et al., NAACL 2019). Where only the sentence is known, the likelihood is
that of all its tokens together; and the passages of a question are held against each other, with one "not here" for all
of them (Clark & Gardner, ACL 2018). Sources are held out by document, each reported alone.
"""

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file
from torch import Tensor, nn

from agent.models.embedding.reader import ENDS, QUESTION_TOKENS, READ_TOKENS, split_pieces
from agent.models.learned import MULTILINGUAL_READER, READER
from agent.models.registry import open_embedder
from training.loop import HAS_HALF, Schedule, endless_batches, pad, read_arguments, train
from training.minilm import WIDTH, Base, changes_as_integers, load_integers, open_whole
from training.multilingual import open_upper
from training.reading import ReadingExample, Span, read_examples, split_sentences

BATCH, BATCHES_SORTED = 16, 8  # texts at once; batches that are put together from texts of about one length
HEAD_GAIN = 5.0  # the two numbers are learned so many times as fast as the layers
MAX_ANSWER = 30  # tokens
HELD_OUT_EACH, HELD_OUT_QUESTIONS = 400, 600  # passages alone, and questions, of a source that are reported
NEVER = -1e4


@dataclass(frozen=True, slots=True)
class Item:
    """An example as numbers. Tokens are counted from the opening one, which stands for "not here"."""

    ids: list[int]
    first: int  # token of the passage
    starts: list[int]  # tokens at which an answer may begin
    ends: list[int]
    offsets: list[Span]  # characters of the passage, of its tokens
    example: ReadingExample


Group = Sequence[Item]  # the passages of one question


class Reader(nn.Module):
    """A base model and its two numbers."""

    def __init__(self, base: Base) -> None:
        super().__init__()
        self.base, self.bert = base, base.bert
        self.ends = nn.Linear(WIDTH, 2)
        nn.init.normal_(self.ends.weight, std=0.02 / HEAD_GAIN)

    def logits(self, items: Sequence[Item]) -> Tensor:
        """(texts, tokens, 2): `NEVER` where no answer can be."""
        padding = self.base.padding
        ids = pad([item.ids for item in items], padding).long()
        with torch.autocast("cpu", torch.bfloat16, enabled=HAS_HALF):
            states = self.bert(input_ids=ids, attention_mask=(ids != padding).long()).last_hidden_state
        found: Tensor = self.ends(states.float()) * HEAD_GAIN
        can_be = torch.zeros_like(ids, dtype=torch.bool)
        can_be[:, 0] = True
        for row, item in enumerate(items):
            can_be[row, item.first : item.first + len(item.offsets)] = True
        return found.masked_fill(~can_be.unsqueeze(-1), NEVER)

    def loss(self, batch: Sequence[Group]) -> Tensor:
        """An answer is held against all others of its passages together, and against none in any of them."""
        logits = self.logits(list(chain.from_iterable(batch)))
        odds, row, told = logits - logits[:, :1], 0, list[Tensor]()
        for group in batch:
            own = odds[row : row + len(group), 1:].reshape(-1, 2)
            chances = torch.cat([own.new_zeros(1, 2), own]).log_softmax(0)
            for end in (0, 1):
                told.append(-torch.logsumexp(chances[_targets(group, end, logits.shape[1] - 1), end], 0))
            row += len(group)
        return torch.stack(told).mean()


def _targets(group: Group, end: int, width: int) -> list[int]:
    """Where answers begin or end in the passages of a question one after the other; [0] where there is none."""
    found = [
        n * width + token for n, item in enumerate(group) for token in (item.ends if end else item.starts) if token
    ]
    return found or [0]


def make_item(example: ReadingExample, base: Base) -> Item | None:
    """An example as numbers; None where its answer is cut off."""
    question = [token for _, tokens in split_pieces(example.question, base.cut) for token in tokens][-QUESTION_TOKENS:]
    read = [(token, span) for span, tokens in split_pieces(example.text, base.cut) for token in tokens]
    read = read[: READ_TOKENS - len(question) - 3]
    passage, offsets = [token for token, _ in read], [span for _, span in read]
    if not passage:
        return None
    opening, *_, closing = base.encoder.tokenize("a")
    ids = [opening, *question, closing, *passage, closing]
    first, starts, ends = len(question) + 2, list[int](), list[int]()
    for a, b in example.answers:
        inside = [first + n for n, (start, end) in enumerate(offsets) if start < b and end > a]
        if inside and offsets[-1][1] >= b:
            starts += inside if not example.exact else inside[:1]
            ends += inside if not example.exact else inside[-1:]
    if example.answers and not starts:
        return None
    return Item(ids, first, starts or [0], ends or [0], offsets, example)


def make_batches(groups: Sequence[Group], order: random.Random) -> list[list[Group]]:
    """All passages once, each batch of about one length."""
    shuffled = order.sample(groups, len(groups))
    size = BATCH * BATCHES_SORTED // 2
    parts = (shuffled[start : start + size] for start in range(0, len(shuffled), size))
    batches: list[list[Group]] = [[]]
    for group in chain.from_iterable(sorted(part, key=lambda group: max(len(i.ids) for i in group)) for part in parts):
        if sum(map(len, batches[-1])) + len(group) > BATCH:
            batches.append([])
        batches[-1].append(group)
    order.shuffle(batches)
    return batches


def best_span(logits: Tensor, item: Item) -> tuple[Span, float]:
    """The best answer of a passage, in its characters, and by how much it is better than "not here"."""
    last = item.first + len(item.offsets)
    start, end = logits[item.first : last, 0], logits[item.first : last, 1]
    sums = (start[:, None] + end[None, :]).triu().tril(MAX_ANSWER - 1)
    sums = sums.masked_fill(torch.ones_like(sums).triu().tril(MAX_ANSWER - 1) == 0, 2 * NEVER)
    a, b = divmod(int(sums.argmax()), sums.shape[1])
    return (item.offsets[a][0], item.offsets[b][1]), float(sums[a, b] - logits[0].sum())


@torch.no_grad()
def report(model: Reader, groups: Sequence[Group]) -> None:
    """Of each source held out: the sentence found, the answer's words (F1), and how well "not here" is told (AUC)."""
    _report_groups(model, groups)
    items = list(chain.from_iterable(groups))
    by_source = defaultdict(list)
    for item in items:
        by_source[item.example.source].append(item)
    print("source      n  sentence   exact      F1     AUC")
    for source, members in by_source.items():
        members = members[:HELD_OUT_EACH]
        found = [best_span(model.logits([item])[0], item) for item in members]
        asked = [(item.example, span) for item, (span, _) in zip(members, found, strict=True) if item.example.answers]
        margins = [(margin, bool(item.example.answers)) for item, (_, margin) in zip(members, found, strict=True)]
        sentence = np.mean([_same_sentence(example, span) for example, span in asked])
        exact = np.mean([_overlap(example, span) == 1 for example, span in asked])
        overlap = np.mean([_overlap(example, span) for example, span in asked])
        print(
            f"{source:10} {len(asked):3}  {sentence:.3f}     {exact:.3f}   {overlap:.3f}   {_auc(margins):.3f}",
            flush=True,
        )


@torch.no_grad()
def _report_groups(model: Reader, groups: Sequence[Group]) -> None:
    """Whether the best answer of all passages of a question is the right sentence; AUC of the best margin."""
    by_source = defaultdict(list)
    for group in groups:
        by_source[group[0].example.source].append(group)
    print("of all passages\nsource      n  sentence     AUC")
    for source, members in by_source.items():
        right, margins = [], []
        for group in members[:: max(1, len(members) // HELD_OUT_QUESTIONS)]:
            found = [best_span(model.logits([item])[0], item) for item in group]
            best = max(range(len(group)), key=lambda n: found[n][1])
            has = any(item.example.answers for item in group)
            margins.append((found[best][1], has))
            if has:
                example = group[best].example
                right.append(bool(example.answers) and _same_sentence(example, found[best][0]))
        print(f"{source:10} {len(right):3}  {np.mean(right):.3f}     {_auc(margins):.3f}", flush=True)


def _same_sentence(example: ReadingExample, found: Span) -> bool:
    """Whether the sentence in which the found answer begins has one of the answers, or its beginning."""
    sentence = next(span for span in split_sentences(example.text) if span[0] <= found[0] < span[1])
    return any(a < sentence[1] and b > sentence[0] for a, b in example.answers)


def _overlap(example: ReadingExample, found: Span) -> float:
    """The F1 of the words, of the answer that fits best."""
    said = example.text[found[0] : found[1]].lower().split()
    return max(_f1(said, example.text[a:b].lower().split()) for a, b in example.answers)


def _f1(said: list[str], wanted: list[str]) -> float:
    same = sum(min(said.count(word), wanted.count(word)) for word in set(said))
    return 2 * same / (len(said) + len(wanted)) if same else 0.0


def _auc(margins: Sequence[tuple[float, bool]]) -> float:
    """How likely a passage with an answer has the larger margin than one without."""
    yes, no = ([margin for margin, has in margins if has is which] for which in (True, False))
    return float(np.mean([(a > b) + 0.5 * (a == b) for a in yes for b in no])) if yes and no else float("nan")


def save_reader(model: Reader, path: Path) -> None:
    """Write what was learned: of each weight the change, as 8-bit integers with a scale a row."""
    tensors = changes_as_integers(model.base)
    head = torch.cat([model.ends.weight, model.ends.bias[:, None]], 1).detach() * HEAD_GAIN
    save_file({**tensors, ENDS: head.numpy().astype(np.float32)}, path, metadata={"base": model.base.name})


def load_reader(model: Reader, path: Path) -> None:
    """Go on from what `save_reader` wrote."""
    head = load_integers(model.base, path)[ENDS] / HEAD_GAIN
    with torch.no_grad():
        model.ends.weight.copy_(head[:, :-1])
        model.ends.bias.copy_(head[:, -1])


def main() -> None:
    asked = read_arguments(__doc__ or "", READER, Schedule(2600, 2e-4))
    if asked.multilingual and asked.output == READER:
        asked.output = MULTILINGUAL_READER
    model = Reader(open_upper() if asked.multilingual else open_whole())
    if asked.start:
        load_reader(model, asked.start)
    embedder = open_embedder("minilm")
    assert embedder
    read = partial(read_examples, any_language=asked.multilingual)
    learned, held_out = (
        [
            group
            for examples in read(asked.data, random.Random(asked.seed), embedder.embed, held_out=apart)
            if (group := [item for example in examples if (item := make_item(example, model.base))])
        ]
        for apart in (False, True)
    )
    print(f"{len(learned)} questions, {len(held_out)} held out", flush=True)
    batches = endless_batches(lambda order: make_batches(learned, order), asked.seed)
    checkpoint = asked.output.with_suffix(".checkpoint")
    train(model, batches, model.loss, Schedule(asked.steps, asked.rate, asked.seed), checkpoint)
    save_reader(model, asked.output)
    report(model, held_out)
    checkpoint.unlink()


if __name__ == "__main__":
    main()
