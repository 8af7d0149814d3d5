"""An answer made of sentences that stand in the passages: the one that answers first, and no more than was asked for.

Such an answer is supported by construction. Where even the nearest sentence is far from what is asked, it says so
first. What a model sampled has no say here: the same question has nearly always the same answer on every
processor (docs/reliability.md).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from agent.models.protocol import LanguageModel
from agent.turn.attribution import supporting_ids
from agent.turn.interface_sentences import NOT_FOUND_SENTENCES, SENTENCES, InterfaceSentences, choose_sentences
from agent.turn.question_words import stem_words
from agent.turn.quote_ranking import rank_quotes, weigh_chances
from agent.turn.quotes import Quote, find_quotes, to_sentence, truncate_words
from agent.turn.tables.two_values import compute_of_two
from indexes.ranking.vectors import Embedder
from indexes.text.analysis import ENGLISH
from indexes.text.response_length import leading_within_limit, response_length
from schemas.records import Passage, Plan, Query, Response, ScoredStatement, Sentence
from schemas.tuning import AnswerTuning, Tuning

MAX_DIRECT = 10  # words of what stands first


def extract_answer(
    query: Query,
    selected_statements: Sequence[ScoredStatement],
    passages: Sequence[Passage],
    embedder: Embedder | None,
    plan: Plan,
    llm: LanguageModel | None = None,
) -> Response:
    """The sentences that answer, the best first; empty only where there is none.

    `llm` compares the best of them, where it was taught to.
    """
    tuning = plan.tuning
    quotes = find_quotes(passages, tuning.answer)
    if not quotes:
        return Response(())
    ranked, answerable = rank_quotes(quotes, query, selected_statements, embedder, tuning, llm)
    if not answerable:
        nearest = ranked[: tuning.answer.fallback_sentences]
        opening = choose_own_sentences(query, tuning.answer).not_found
        return Response((Sentence(opening, ()), *_cite(nearest, passages, [opening], plan)))
    chances = weigh_chances(ranked, tuning.answer)
    gap = tuning.answer.all_within if embedder else tuning.answer.words_within
    near = [quote for quote in ranked[1:] if quote.score >= ranked[0].score - gap]
    joining = near if gap else keep_likely(ranked, chances, tuning.answer)
    wanted = [ranked[0], *(quote for quote in joining if len(quote.lead.split()) >= tuning.answer.joining_words)]
    ask = partial(_ask, quotes, embedder, tuning)
    if query.today and embedder and (computed := compute_of_two(query.utterance, query.today, ask)):
        said, rests_on = computed
        return Response(_cite(rests_on, passages, [], plan), to_sentence(said))
    if parts := split_parts(query.utterance):
        asked = replace(query, utterance=parts[1], rewrite=f"{parts[1]} ({parts[0]})")
        led = [ask(parts[0], "")] if query.standalone == query.utterance else ranked[:1]
        second = rank_quotes(quotes, asked, (), embedder, tuning)[0]
        others = [quote for quote in second if quote.texts != led[0].texts and quote.reading.margin >= 0]
        wanted = [*led, *(others or second)[:1], *wanted]
    sentences = _cite(list(dict.fromkeys(wanted)), passages, [], plan)
    nearby = _cite_nearby(ranked, sentences, passages, tuning.answer)
    is_measured = not parts and choose_own_sentences(query, tuning.answer) == SENTENCES[ENGLISH]
    chance = _find_chance(ranked, chances, tuning.answer) if is_measured else None
    return Response(sentences, find_direct_answer(wanted[0], tuning.answer), nearby, chance)


def _ask(quotes: Sequence[Quote], embedder: Embedder | None, tuning: Tuning, question: str, before: str) -> Quote:
    """The quote that answers a question best; one that follows another, after that."""
    earlier = (before,) if before else ()
    return rank_quotes(quotes, Query(question, context=earlier, earlier_utterances=earlier), (), embedder, tuning)[0][0]


def find_direct_answer(best: Quote, tuning: AnswerTuning) -> str:
    """The few words that answer, where the reader is sure of them; else ""."""
    is_sure = best.reading.margin >= tuning.direct_margin and best.reading.lead >= tuning.direct_lead
    is_short = 0 < len(best.reading.text.split()) <= min(MAX_DIRECT, len(best.lead.split()) - 1)
    return to_sentence(best.reading.text) if is_sure and is_short else ""


def choose_own_sentences(query: Query, tuning: AnswerTuning) -> InterfaceSentences:
    """What is said where there is no answer, in the person's language where answers are."""
    utterances = (*query.earlier_utterances, query.utterance)
    return choose_sentences(utterances) if tuning.own_language else SENTENCES[ENGLISH]


def _support(texts: Iterable[str], passages: Sequence[Passage]) -> tuple[Sentence, ...]:
    """Those of some sentences that passages support, with these passages."""
    cited = (Sentence(text, supporting_ids(text, passages)) for text in texts)
    return tuple(sentence for sentence in cited if sentence.passage_ids)


def _cite(
    quotes: Sequence[Quote], passages: Sequence[Passage], opening: Sequence[str], plan: Plan
) -> tuple[Sentence, ...]:
    """The sentences of quotes, best first, that have room after an opening, with the passages that support them."""
    tokens, tuning = plan.response_tokens, plan.tuning.answer
    chosen = _drop_redundant(quotes, min(plan.words, tokens), tuning.max_redundancy)
    return _support(_fit(_lead_with_best(chosen), opening, tokens, tuning), passages)


def keep_likely(ranked: Sequence[Quote], chances: Sequence[float], tuning: AnswerTuning) -> list[Quote]:
    """Of the quotes after the best, those that may well answer in its place; none where that surely answers."""
    if chances[0] >= tuning.sure_chance:
        return []
    held = zip(ranked[1:], chances[1:], strict=False)
    return [quote for quote, chance in held if chance >= tuning.least_chance]


def _find_chance(ranked: Sequence[Quote], chances: Sequence[float], tuning: AnswerTuning) -> float | None:
    """The chance of the best quote and of those that only repeat it; None where nobody read, or it stands alone."""
    best = ranked[0]
    if len(chances) < 2 or best.language != ENGLISH or not any(quote.reading.text for quote in ranked[: len(chances)]):
        return None
    return sum(
        chance
        for quote, chance in zip(ranked, chances, strict=False)
        if quote is best or _share_said(quote, best.stems()) > tuning.max_redundancy
    )


def _cite_nearby(
    ranked: Sequence[Quote], said: Sequence[Sentence], passages: Sequence[Passage], tuning: AnswerTuning
) -> tuple[Sentence, ...]:
    """What comes near without being part of the answer, best first, with the passages that support it."""
    texts = {sentence.text for sentence in said}
    near = [quote for quote in ranked if quote.score >= ranked[0].score - tuning.nearby_gap]
    left = [quote for quote in near if texts.isdisjoint(quote.texts) and quote.length >= tuning.joining_words]
    shown = [text for quote in left[: tuning.nearby_sentences] for text in quote.texts]
    return _support(dict.fromkeys(shown), passages)


def _drop_redundant(ranked: Sequence[Quote], max_words: int, max_redundancy: float) -> list[Quote]:
    """The best quotes that together have room, without those that repeat what better ones say."""
    chosen: list[Quote] = []
    stems_so_far: frozenset[str] = frozenset()
    for quote in ranked:
        redundancy = _share_said(quote, stems_so_far)
        words = quote.length + sum(other.length for other in chosen)
        if not chosen or (redundancy <= max_redundancy and words <= max_words):
            chosen.append(quote)
            stems_so_far |= quote.stems()
    return chosen


def _share_said(quote: Quote, said: frozenset[str]) -> float:
    """The share of a quote's stems that have been said."""
    return len(quote.stems() & said) / max(1, len(quote.stems()))


def _lead_with_best(chosen: Sequence[Quote]) -> list[str]:
    """What answers best, what it points back to, then the other quotes in the order of their passages, each once."""
    rest = sorted(chosen[1:], key=lambda quote: (quote.rank, quote.place))
    first = [quote.lead for quote in chosen[:1] if not any(text.endswith(":") for text in quote.texts)]
    return list(dict.fromkeys((*first, *(text for quote in (*chosen[:1], *rest) for text in quote.texts))))


def _fit(texts: Sequence[str], opening: Sequence[str], tokens: int, tuning: AnswerTuning) -> list[str]:
    """As many sentences as fit after an opening; of the first, where not even that one fits, its beginning."""
    fitting = leading_within_limit([*opening, *texts], tokens)[len(opening) :]
    room = tokens - sum(map(response_length, opening))
    return fitting or [truncate_words(text, room, tuning.max_sentence_words) for text in texts[:1]]


def says_not_found(response: Response) -> bool:
    """Whether an answer says that the passages have none."""
    opening = response.sentences[:1]
    return bool(opening) and not opening[0].passage_ids and opening[0].text in NOT_FOUND_SENTENCES


_QUESTION_WORD = (
    r"\b(?:how|what|which|who|whom|when|where|why|(?:from|until|since) when|wann|wo|wer|wie|warum|was|welche\w*)\b"
)
_TWO_PARTS = re.compile(
    rf"(.*?{_QUESTION_WORD}.+?)(?:[,?]\s*|\s+)(?:and|und)\s+({_QUESTION_WORD}.*)", re.IGNORECASE | re.DOTALL
)


def split_parts(question: str) -> tuple[str, str] | None:
    """The two parts of a question that asks twice; None of any other."""
    found = _TWO_PARTS.fullmatch(question)
    return (found[1].strip(), found[2].strip()) if found and stem_words(found[1]) else None
