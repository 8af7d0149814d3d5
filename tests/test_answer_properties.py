"""Whatever the passages: every quoted sentence is supported, citations exist, and both length rules hold."""

import re
import zlib
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from agent.turn.attribution import is_supported
from agent.turn.extractive_answer import extract_answer
from agent.turn.interface_sentences import NOT_FOUND
from indexes.ranking.vectors import Embedder, Readout, Vectors
from indexes.text.response_length import response_length
from schemas.records import Passage, Plan, Query
from tests.conftest import examples

FRAGMENTS = (
    "The night train costs 94 EUR.",
    "The ferry costs 61 EUR.",
    "The ferry costs about 61 EUR a night.",
    "It was not agreed in this contract.",
    "Only with written permission.",
    "# Heading",
    "## Prices 2023",
    "| what | EUR |\n|---|---|\n| train | 94.00 |\n| ferry | 61.00 |",
    "name: Ada; born: 1990; town: Riga.",
    "- flour\n- salt",
    "To top up: open the black valve.",
    "Warning: never reset it.",
    "Wir kommen am 3. Mai um 8 Uhr.",
    "It opens from 9 a.m. to 8 p.m.",
    "Home | Prices | Contact",
    "WHAT ABOUT THE TRAIN?",
    "z. B. etwa 1.500 EUR",
    "E.17; ;: — …",
    "面包可以保存九天。",
    "\n\n",
)
QUESTIONS = (
    "Which is cheaper, the night train or the ferry?",
    "How much do the night train and the ferry cost together?",
    "How much more expensive is the night train than the ferry?",
    "Compare the train and the ferry",
    "What does the ferry cost, and when does it open?",
    "What should I do at E.17?",
    "Why was it not agreed?",
    "When does it open now?",
    "Is it open?",
    "And the ferry?",
    "Who is Ada?",
)
TEXTS = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=40)), max_size=8).map(" ".join)
IDS = st.sampled_from(["train.txt", "ferry.txt", "prices-2023.html", "prices-2025.html"])
PASSAGES = st.lists(st.tuples(IDS, st.sampled_from(["", "Ferry", "Night train: Prices"]), TEXTS), max_size=4)
SIZE = 64


def embed_words(texts: Sequence[str]) -> Vectors:
    rows = np.full((len(texts), SIZE), 1e-3, dtype=np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in re.findall(r"\w+", text.lower()):
            row[zlib.crc32(word.encode()) % SIZE] += 1.0
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def read_anywhere(question: str, passage: str, _both_english: bool) -> Sequence[Readout]:
    pieces = tuple(found.span() for found in re.finditer(r"\w+|\S", passage))
    chance = np.random.default_rng(zlib.crc32(f"{question}{passage}".encode()))
    starts, ends = chance.normal(0, 4, (2, len(pieces))).astype(np.float32)
    return (Readout(pieces, starts, ends, 0.0),)


# Vectors of the words alone, and a reader that finds answers anywhere: what must hold holds whatever they say.
WORDS = Embedder("words", "words", SIZE, 99, embed_words, lambda text: len(text.split()), read=read_anywhere)


@examples(200)
@given(
    drawn=PASSAGES,
    asked=st.sampled_from(QUESTIONS),
    embedder=st.sampled_from([None, WORDS]),
    plan=st.sampled_from([Plan(), Plan(words=60), Plan(words=12, response_tokens=40)]),
)
def test_what_is_quoted_is_supported_and_within_its_length(
    drawn: list[tuple[str, str, str]], asked: str, embedder: Embedder | None, plan: Plan
) -> None:
    passages = [Passage(f"{name}:{n}", text, title) for n, (name, title, text) in enumerate(drawn)]
    query = Query(asked, previous_reply="The ferry costs 61 EUR.", earlier_utterances=(QUESTIONS[0],))
    response = extract_answer(query, (), passages, embedder, plan)
    held = {passage.id: passage.text for passage in passages}
    for sentence in response.sentences:
        assert sentence.passage_ids or sentence.text == NOT_FOUND
        assert all(is_supported(sentence.text, held[id]) for id in sentence.passage_ids)
    assert response_length(response.text) <= plan.response_tokens  # the stricter of both counts
    direct = response.direct.rstrip(".").lower()
    assert not direct or response.used
    if plan == Plan():
        assert direct in response.text.lower()  # a direct answer stands in what is quoted
