"""Teach SmolLM2-135M to tell which sentence answers, of those that a chat ranks first: an adapter that llama.cpp loads.

    python -m training.chooser ../shared/data [-o FILE] [--steps N] [--rate R] [--seed N]

It reads a question and one sentence, after its headings and what stands before it; how much likelier "yes" then is than
"no" is held against that of the other sentences (ListNet: Cao et al., ICML 2007). At first these share words with the
question, stand near the right one or in its document. Later, questions over folders that the reader did not learn are
ranked as in a chat, and what is learned is what has to be added to that.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, repeat
from math import log, sqrt
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from agent.chat.session import BRIEF, PLAN
from agent.models.bundled import ADAPTERS, CHOOSER
from agent.models.local.llama_cpp import MAX_COMPARED_WORDS
from agent.models.registry import open_embedder
from agent.turn.question_words import stem_words
from agent.turn.quote_ranking import rank_quotes
from agent.turn.quotes import Quote, find_quotes
from agent.turn.reading import compose_follow_up
from agent.turn.retrieval import Searcher
from indexes.documents.reading import parse_document
from schemas.records import Query
from training.loop import HAS_HALF, Schedule, read_arguments
from training.reading import open_folder, read_folders, says_any
from training.smollm2 import BATCH, TaughtSmolLM2

RIVALS, NEAR, BESIDE = 4, 10, 2  # sentences beside the right one; of how many like the question; how far from it
LEARNED, EVERY = 44, 3  # folders that the reader learned; of the questions over the others, which are ranked
SURE = 0.93  # a ranking that is so sure, and right, teaches nothing
BY_WORDS = 0.75  # of the steps
UNCHANGED = 8  # layers


@dataclass(frozen=True, slots=True)
class Choice:
    """A question with sentences, as tokens."""

    question: list[int]
    sentences: list[list[int]]
    before: list[float]  # log odds of each, from elsewhere
    right: list[bool]

    def __len__(self) -> int:
        return len(self.question) + sum(map(len, self.sentences))


class Chooser(TaughtSmolLM2):
    """The sentences of a question are read beside each other: each sees the question and itself."""

    def make_choice(
        self, question: str, texts: Sequence[str], before: Sequence[float], right: Sequence[bool]
    ) -> Choice:
        """As `LlamaCppModel.compare` reads them."""
        opened = f"<|im_start|>user\n{' '.join(question.split()[-MAX_COMPARED_WORDS:])}"
        shown = [" ".join(text.split(" ")[:MAX_COMPARED_WORDS]) for text in texts]
        rows = [self.tokenize(f"\n\n{text}<|im_end|>\n<|im_start|>assistant\n") for text in shown]
        return Choice(self.tokenize(opened), rows, list(before), list(right))

    def loss(self, batch: Sequence[Choice]) -> Tensor:  # type: ignore[override]
        """The cross entropy of the sentences that answer, held against those of the same question."""
        odds = self._weigh(batch).split([len(choice.sentences) for choice in batch])
        chances = [
            (own + torch.tensor(choice.before)).log_softmax(0)[torch.tensor(choice.right)]
            for own, choice in zip(odds, batch, strict=True)
        ]
        return -torch.stack([torch.logsumexp(each, 0) for each in chances]).mean()

    def _weigh(self, batch: Sequence[Choice]) -> Tensor:
        """By how much "yes" is likelier than "no" after each sentence, one question after the other."""
        length, ends = max(map(len, batch)), list[tuple[int, int]]()
        ids, places = torch.zeros(2, len(batch), length, dtype=torch.long)
        seen = torch.zeros(len(batch), length, length, dtype=torch.bool)
        seen[:, :, 0] = True
        for row, choice in enumerate(batch):
            first = at = len(choice.question)
            seen[row, :, :first] = True
            ids[row, :first], places[row, :first] = torch.tensor(choice.question), torch.arange(first)
            for sentence in choice.sentences:
                end = at + len(sentence)
                ids[row, at:end], places[row, at:end] = torch.tensor(sentence), first + torch.arange(len(sentence))
                seen[row, at:end, at:end] = True
                ends.append((row, end - 1))
                at = end
        causal, nothing = self.adapted.base_model.model, torch.finfo(torch.bfloat16).min
        mask = torch.zeros(seen.shape, dtype=torch.bfloat16).masked_fill(~seen.tril(), nothing)
        with torch.autocast("cpu", torch.bfloat16, enabled=HAS_HALF):
            read = causal.model(input_ids=ids, attention_mask=mask[:, None], position_ids=places, use_cache=False)
        yes, no = (causal.lm_head.weight[self.tokenize(word)[0]].float() for word in ("yes", "no"))
        states: Tensor = read.last_hidden_state[tuple(map(torch.tensor, zip(*ends, strict=True)))]
        return states.float() @ (yes - no)


def choose_by_words(model: Chooser, folder: Sequence[dict[str, Any]], order: random.Random) -> Iterator[Choice]:
    """The questions over a folder, each with a right sentence and some others."""
    quotes = [(document["title"], quote) for document in folder for quote in _quote(document)]
    stems = [quote.headed_stems() for _, quote in quotes]
    counts = Counter(stem for own in stems for stem in own)
    for document in folder:
        for asked in document["questions"]:
            has = [says_any(quote.lead, asked["answers"]) for _, quote in quotes]
            right = [n for n, (title, _) in enumerate(quotes) if has[n] and title == document["title"]]
            if not right:
                continue
            question = _compose(asked, order)
            wanted = set(stem_words(question))
            likeness = [
                sum(log(1 + len(stems) / counts[stem]) for stem in wanted & own) / sqrt(4 + len(own)) for own in stems
            ]
            best = max(right, key=lambda n: likeness[n])
            others = sorted((n for n in range(len(quotes)) if not has[n]), key=lambda n: -likeness[n])
            near = order.sample(others[:NEAR], min(RIVALS - 1, len(others)))
            own = [n for n in others if quotes[n][0] == document["title"]]
            beside = [n for n in own if abs(n - best) <= BESIDE]
            rivals = dict.fromkeys([*near, *(order.choice(some) for some in (own, beside) if some)])
            texts = [quotes[n][1].in_context for n in (best, *islice(rivals, RIVALS))]
            yield model.make_choice(question, texts, [0.0] * len(texts), [True, *[False] * (len(texts) - 1)])


def choose_in_chat(model: Chooser, folder: Sequence[dict[str, Any]], order: random.Random) -> Iterator[Choice]:
    """Some of the questions over a folder, each with the sentences that a chat ranks first, where one is right."""
    embedder, tuning = open_embedder("minilm"), BRIEF.answer
    with open_folder(folder, embedder) as current, current.use() as searchable:
        searcher = Searcher(searchable.retriever, PLAN)
        for asked in [asked for each in folder for asked in each["questions"]][::EVERY]:
            query = Query(_compose(asked, order))
            passages = searcher.read(searcher.search(query)[: tuning.first_passages])
            quotes = rank_quotes(find_quotes(passages, tuning), query, (), embedder, BRIEF)[0][: tuning.compared]
            before = [tuning.chance_scale * quote.score for quote in quotes]
            right = [says_any(quote.lead, asked["answers"]) for quote in quotes]
            is_sure = right[0] and float(torch.tensor(before).softmax(0)[0]) >= SURE
            if any(right) and not (all(right) or is_sure):
                yield model.make_choice(query.utterance, [quote.in_context for quote in quotes], before, right)


def _quote(document: dict[str, Any]) -> list[Quote]:
    name = f"{document['title'].replace('/', ' ')}.md"
    return find_quotes(parse_document(Path(name), name, document["text"].encode()).passages, BRIEF.answer)


def _compose(asked: dict[str, Any], order: random.Random) -> str:
    """A follow-up after the question that it follows, or as it stands alone."""
    if not asked.get("after"):
        return str(asked["question"])
    return order.choice((compose_follow_up(asked["after"][-1], asked["question"]), asked["standalone"]))


def main() -> None:
    asked = read_arguments(__doc__ or "", ADAPTERS[CHOOSER], Schedule(1200, 5e-4))
    model, order, folders = Chooser(UNCHANGED), random.Random(asked.seed), list(read_folders().values())
    by_words = [choice for folder in folders for choice in choose_by_words(model, folder, order)]
    later = [folder for folder in folders if len(folder) > 1][LEARNED:]
    in_chat = [choice for folder in later for choice in choose_in_chat(model, folder, order)]
    print(f"{len(by_words)} questions with rivals by words, {len(in_chat)} ranked", flush=True)
    first = order.sample(by_words, int(BY_WORDS * asked.steps) * BATCH)
    epochs = chain([first], repeat(in_chat))
    model.teach(lambda _order: next(epochs), Schedule(asked.steps, asked.rate, asked.seed), asked.output)


if __name__ == "__main__":
    main()
