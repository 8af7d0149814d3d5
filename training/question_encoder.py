"""Teach all-MiniLM-L6-v2 where what answers a question lies among a person's own documents.

    python -m training.question_encoder ../shared/data [-o FILE] [--steps N] [--seed N]

The passages of a folder keep the vectors of the base model. Their cosines with the vector of the question, beside what
words tell of them as in a search, are held against each other, and those that have an answer are to be likely (as in
DPR: Karpukhin et al., EMNLP 2020, with one side frozen and all passages of the folder in the place of some); and so are
those of its sentences.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from agent.chat.session import BRIEF
from agent.models.learned import QUESTION_ENCODER
from agent.models.registry import open_embedder
from agent.turn.quotes import find_quotes
from agent.turn.retrieval import weigh_words
from indexes.passage_index import Index
from indexes.ranking.vectors import Embedder
from schemas.records import Query
from training.loop import Schedule, endless_batches, pad, read_arguments, train
from training.minilm import ChangedMiniLM, pool, save_changes
from training.reading import open_folder, read_folders, says_any

RANK = 32
BATCH = 32  # questions
TOKENS = 64  # read of a question
SHARPNESS = 15.0  # of cosines, before the softmax
MOST = 1 / 3  # of a folder's passages that may have the answer
SENTENCES = 0.5  # what the loss of sentences weighs


@dataclass(frozen=True, slots=True)
class Folder:
    """The vectors of all passages of a folder, and of all its sentences, the mean of alone and after their headings."""

    passages: Tensor
    sentences: Tensor


@dataclass(frozen=True, slots=True)
class Item:
    """A question to a folder."""

    question: str
    folder: Folder
    by_words: Tensor  # what the words tell of each passage, the best having 1
    passages: Tensor  # the numbers of those that answer
    sentences: Tensor


class QuestionEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.minilm = ChangedMiniLM(RANK)

    def loss(self, batch: Sequence[Item]) -> Tensor:
        """The cross entropy of the passages and sentences that answer, held against all of the folder."""
        tokenize = self.minilm.tokenizer
        ids = pad([tokenize(each.question, truncation=True, max_length=TOKENS)["input_ids"] for each in batch]).long()
        vectors, words = pool(self.minilm.states(ids), ids), SHARPNESS / BRIEF.retrieval.cosine_weight
        lost = []
        for item, vector in zip(batch, vectors, strict=True):
            passages = SHARPNESS * (item.folder.passages @ vector) + words * item.by_words
            lost.append(lose(passages, item.passages))
            if len(item.sentences):
                lost.append(SENTENCES * lose(SHARPNESS * (item.folder.sentences @ vector), item.sentences))
        return torch.stack(lost).sum() / len(batch)


def lose(odds: Tensor, right: Tensor) -> Tensor:
    """The cross entropy of the right ones together."""
    return -torch.logsumexp(odds.log_softmax(0)[right], 0)


def make_items(folder: Sequence[dict[str, Any]], embedder: Embedder) -> Iterator[Item]:
    """The questions to a folder that some passages answer, but not many."""
    with open_folder(folder, embedder) as current, current.use() as searchable:
        index: Index = searchable.retriever.index
        passages = index.read(index.get_ids(range(len(index))))
        quotes = find_quotes(passages, BRIEF.answer)
        alone, headed = embedder.embed([quote.lead for quote in quotes]), embedder.embed([q.headed for q in quotes])
        whole = np.asarray(searchable.retriever.vectors, dtype=np.float32)
        vectors = Folder(torch.from_numpy(whole), torch.from_numpy((alone + headed) / 2))
        for asked in (asked for each in folder for asked in each["questions"]):
            right = _find_answers([passage.text for passage in passages], asked)
            if 0 < len(right) < MOST * len(passages):
                question = asked.get("standalone") or asked["question"]
                sentences = _find_answers([quote.lead for quote in quotes], asked)
                yield Item(question, vectors, _weigh_by_words(question, index), right, sentences)


def _find_answers(texts: Sequence[str], asked: dict[str, Any]) -> Tensor:
    return torch.tensor([n for n, text in enumerate(texts) if says_any(text, asked["answers"])], dtype=torch.long)


def _weigh_by_words(question: str, index: Index) -> Tensor:
    weighed = index.weigh([(question, 1.0), *weigh_words(Query(question), BRIEF)])
    ranked = index.rank(weighed, len(index))
    shares = torch.zeros(len(index))
    for number, score in ranked:
        shares[number] = score / ranked[0][1]
    return shares


def main() -> None:
    asked = read_arguments(__doc__ or "", QUESTION_ENCODER, Schedule(553, 6e-4))
    model, embedder = QuestionEncoder(), open_embedder("minilm")
    assert embedder
    items = [item for folder in read_folders().values() if len(folder) > 1 for item in make_items(folder, embedder)]
    print(f"{len(items)} questions", flush=True)

    def cut(order: random.Random) -> list[list[Item]]:
        shuffled = order.sample(items, len(items))
        return [shuffled[start : start + BATCH] for start in range(0, len(items) - BATCH + 1, BATCH)]

    checkpoint = asked.output.with_suffix(".checkpoint")
    schedule = Schedule(asked.steps, asked.rate, asked.seed)
    train(model, endless_batches(cut, asked.seed), model.loss, schedule, checkpoint)
    save_changes(model.minilm, {}, asked.output)
    checkpoint.unlink()


if __name__ == "__main__":
    main()
