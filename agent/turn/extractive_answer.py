"""An answer made of sentences that stand in the passages: the one that answers first, and no more than was asked for.

Such an answer is supported by construction. Where even the nearest sentence is far from what is asked, it says so
first. What a model sampled has no say here: the same question has the same answer on every processor
(docs/reliability.md).
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from agent.turn.answerability import may_answer
from agent.turn.attribution import supporting_ids
from agent.turn.conclusions.comparison import Conclusion, compare_sides, find_sides
from agent.turn.direct_answer import DirectAnswer, choose_direct_answer, to_sentence
from agent.turn.interface_sentences import NOT_FOUND_SENTENCES, SENTENCES, InterfaceSentences, choose_sentences
from agent.turn.question_kinds import QuestionKind, recognise_kind
from agent.turn.quote_ranking import find_kind, rank_quotes
from agent.turn.quotes import Quote, find_quotes, truncate_words
from agent.turn.spans.answer_spans import has_kind
from agent.turn.spans.question_words import Evidence, find_names, stem_words
from indexes.ranking.vectors import Embed
from indexes.text.analysis import ENGLISH, extract_stems
from indexes.text.response_length import MAX_TOKENS, leading_within_limit, response_length
from schemas.records import Passage, Plan, Query, Response, ScoredStatement, Sentence
from schemas.tuning import AnswerTuning, Tuning

ASKS_WHAT_IS_DUE = re.compile(r"\b(?:need|due|next|must|ha(?:s|ve) to|should|will|fällig|nächste\w*)\b", re.IGNORECASE)
SAYS_WHAT_IS_DUE = re.compile(
    r"\b(?:due|next|must|ha(?:s|ve) to|should|will|by|every|until|before|fällig|nächste\w*|bis|muss)\b", re.IGNORECASE
)
ELSEWHERE = re.compile(r"\b(?:there|dort)\b", re.IGNORECASE)
# Questions that one sentence may answer; all others ask for an account of something.
BRIEF = frozenset({"number", "money", "date", "duration", "place", "person", "code", "yes-no", "choice", "thing"})


@dataclass(frozen=True, slots=True)
class LengthLimit:
    """How long an answer may be."""

    words: int = Plan().words  # by white space
    tokens: int = MAX_TOKENS  # by both official counts


def extract_answer(
    query: Query,
    selected_statements: Sequence[ScoredStatement],
    passages: Sequence[Passage],
    embed: Embed | None,
    limit: LengthLimit,
    tuning: Tuning,
) -> Response:
    """The sentences that answer, the best first; empty only where there is none."""
    quotes = find_quotes(passages, tuning.answer)
    if not quotes:
        return Response(())
    ranked, answerable = rank_quotes(quotes, query, selected_statements, embed, tuning)
    concluded = conclude(query, quotes, passages, embed, tuning)
    if concluded and (response := _cite_conclusion(concluded, passages, limit)).sentences:
        return response
    if not answerable or (tuning.answer.needs_evidence and not may_answer(query.utterance, ranked[0], passages, embed)):
        nearest = ranked[: tuning.answer.fallback_sentences]
        opening = choose_own_sentences(query, tuning.answer).not_found
        return Response((Sentence(opening, ()), *_cite(nearest, passages, [opening], limit, tuning.answer)))
    direct = find_direct_answer(query.utterance, recognise_kind(query.utterance), ranked)
    if direct:
        ranked.insert(0, ranked.pop(direct.sentence_index))
    further = find_further(query, ranked, lambda asked: rank_quotes(quotes, asked, (), embed, tuning)[0])
    near = _keep_near(ranked, find_kind(query), tuning.answer, with_vectors=embed is not None)
    wanted = list(dict.fromkeys((*near[:1], *further, *(() if direct and tuning.answer.direct_stands_alone else near))))
    sentences = _cite(wanted, passages, [], limit, tuning.answer)
    nearby = _cite_nearby(ranked, sentences, passages, tuning.answer)
    return Response(sentences, to_sentence(direct.text) if direct else "", nearby)


def choose_own_sentences(query: Query, tuning: AnswerTuning) -> InterfaceSentences:
    """What is said where there is no answer, in the person's language where answers are."""
    utterances = (*query.earlier_utterances, query.utterance)
    return choose_sentences(utterances) if tuning.own_language else SENTENCES[ENGLISH]


def _support(texts: Iterable[str], passages: Sequence[Passage]) -> tuple[Sentence, ...]:
    """Those of some sentences that passages support, with these passages."""
    cited = (Sentence(text, supporting_ids(text, passages)) for text in texts)
    return tuple(sentence for sentence in cited if sentence.passage_ids)


def _cite(
    quotes: Sequence[Quote],
    passages: Sequence[Passage],
    opening: Sequence[str],
    limit: LengthLimit,
    tuning: AnswerTuning,
) -> tuple[Sentence, ...]:
    """The sentences of quotes, best first, that have room after an opening, with the passages that support them."""
    chosen = _drop_redundant(quotes, min(limit.words, limit.tokens), tuning.max_redundancy)
    return _support(_fit(_lead_with_best(chosen), opening, limit.tokens, tuning), passages)


def conclude(
    query: Query, quotes: Sequence[Quote], passages: Sequence[Passage], embed: Embed | None, tuning: Tuning
) -> Conclusion | None:
    """What follows from a sentence for each side of a comparison; None of any other question."""
    sides = find_sides(query.utterance, query.earlier_utterances)
    if sides is None:
        return None
    ranked, _ = rank_quotes(quotes, Query(sides.question), (), embed, tuning)
    return compare_sides(sides, ranked, passages, query.utterance)


def _cite_conclusion(concluded: Conclusion, passages: Sequence[Passage], limit: LengthLimit) -> Response:
    """The sentences of all sides, and what follows from them; empty where not all have room."""
    texts = list(dict.fromkeys(text for quote in concluded.quotes for text in quote.texts))
    cited = tuple(Sentence(text, supporting_ids(text, passages)) for text in texts)
    words = sum(len(text.split()) for text in texts)
    fits = words <= limit.words and len(leading_within_limit(texts, limit.tokens)) == len(texts)
    if not fits or not all(sentence.passage_ids for sentence in cited):
        return Response(())
    return Response(cited, to_sentence(concluded.direct) if concluded.direct else "")


def find_direct_answer(question: str, kind: QuestionKind, ranked: Sequence[Quote]) -> DirectAnswer | None:
    """The few words that answer, where one of the best quotes surely has them.

    None where the question says "there", where the quote is not about what the question names, and where it may tell of
    the last time, but the next is asked for.
    """
    evidence = [Evidence(quote.lead, quote.heading) for quote in ranked]
    found = None if ELSEWHERE.search(question) else choose_direct_answer(question, kind, evidence)
    if found is None:
        return None
    quote = ranked[found.sentence_index]
    is_past = bool(ASKS_WHAT_IS_DUE.search(question)) and not SAYS_WHAT_IS_DUE.search(quote.lead)
    named = find_names(question) <= set(extract_stems(f"{quote.document} {quote.headed}"))
    return found if named and not is_past else None


def _keep_near(ranked: Sequence[Quote], kind: QuestionKind, tuning: AnswerTuning, *, with_vectors: bool) -> list[Quote]:
    """The quotes that come near the best one; nearer, where one may answer the question, or is from elsewhere."""
    best = ranked[0]
    gap = tuning.brief_gap if _is_brief(kind, best) else tuning.account_gap
    scale = 1.0 if with_vectors else tuning.words_gap_scale
    gaps = {True: gap * scale, False: min(gap, tuning.other_document_gap) * scale}
    joining = [quote for quote in ranked[1:] if len(quote.lead.split()) >= tuning.joining_words]
    return [best, *(quote for quote in joining if quote.score >= best.score - gaps[quote.document == best.document])]


def _is_brief(kind: QuestionKind, best: Quote) -> bool:
    """Whether one sentence may be the whole answer."""
    return kind.name in BRIEF or (kind.name == "definition" and has_kind(kind, best.lead, best.heading))


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
        redundancy = len(quote.stems() & stems_so_far) / max(1, len(quote.stems()))
        words = quote.length + sum(other.length for other in chosen)
        if not chosen or (redundancy <= max_redundancy and words <= max_words):
            chosen.append(quote)
            stems_so_far |= quote.stems()
    return chosen


def _lead_with_best(chosen: Sequence[Quote]) -> list[str]:
    """The sentences of the best quote, then those of the others in the order of their passages, each once."""
    rest = sorted(chosen[1:], key=lambda quote: (quote.rank, quote.place))
    return list(dict.fromkeys(text for quote in (*chosen[:1], *rest) for text in quote.texts))


def _fit(texts: Sequence[str], opening: Sequence[str], tokens: int, tuning: AnswerTuning) -> list[str]:
    """As many sentences as fit after an opening; of the first, where not even that one fits, its beginning."""
    fitting = leading_within_limit([*opening, *texts], tokens)[len(opening) :]
    room = tokens - sum(map(response_length, opening))
    return fitting or [truncate_words(text, room, tuning.max_sentence_words) for text in texts[:1]]


def says_not_found(response: Response) -> bool:
    """Whether an answer says that the passages have none."""
    opening = response.sentences[:1]
    return bool(opening) and not opening[0].passage_ids and opening[0].text in NOT_FOUND_SENTENCES


def nearest_sentence(text: str, passages: Sequence[Passage], embed: Embed | None, tuning: AnswerTuning) -> str:
    """What some passages say most nearly the same, with what must be shown with it; empty where nothing is near."""
    quotes = find_quotes(passages, tuning)
    if not quotes:
        return ""
    if embed is None:
        wanted = set(extract_stems(text))
        similarities = [len(wanted & set(extract_stems(quote.lead))) / max(1, len(wanted)) for quote in quotes]
    else:
        vectors = embed([text, *(quote.lead for quote in quotes)])
        similarities = [float(cosine) for cosine in vectors[1:] @ vectors[0]]
    best = max(range(len(quotes)), key=lambda place: similarities[place])
    return " ".join(quotes[best].texts) if similarities[best] >= tuning.same_sentence else ""


MAX_STEPS = 2  # that follow the one that answers
_QUESTION_WORD = (
    r"(?:how|what|which|who|whom|when|where|why|from when|until when|since when|wann|wo|wer|wie|warum|was|welche\w*)"
)
_NEXT_PART = re.compile(rf"(?:,\s*|\?\s*|\s+)(?:and|und)\s+(?={_QUESTION_WORD}\b)", re.IGNORECASE)
_BEGINS_QUESTION = re.compile(rf".*\b{_QUESTION_WORD}\b", re.IGNORECASE | re.DOTALL)


def find_further(query: Query, ranked: Sequence[Quote], rank: Callable[[Query], list[Quote]]) -> list[Quote]:
    """What answers the second part of a question, and the steps after the best quote where it is asked what to do."""
    kind = recognise_kind(query.utterance)
    return [*_answer_second_part(query, rank), *_list_steps(kind, ranked)]


def split_parts(question: str) -> tuple[str, str] | None:
    """The two parts of a question that asks twice; None of any other."""
    found = _NEXT_PART.search(question)
    if not found or not _BEGINS_QUESTION.match(question[: found.start()]) or not stem_words(question[: found.start()]):
        return None
    return question[: found.start()].strip(), question[found.end() :].strip()


def _answer_second_part(query: Query, rank: Callable[[Query], list[Quote]]) -> list[Quote]:
    """The best quote for the second part that has what it asks for; none where that cannot be told."""
    parts = split_parts(query.utterance)
    kind = recognise_kind(parts[1]) if parts else QuestionKind("other")
    if parts is None or kind == recognise_kind(parts[0]):
        return []
    ranked = rank(replace(query, utterance=parts[1], rewrite=f"{parts[1]} ({parts[0]})"))
    return [quote for quote in ranked if has_kind(kind, quote.lead, quote.heading)][:1]


def _list_steps(kind: QuestionKind, ranked: Sequence[Quote]) -> list[Quote]:
    """The instructions that follow the best quote in its section, where it is asked what to do."""
    if kind.name != "how-to":
        return []
    best = ranked[0]
    following = range(best.place + 1, best.place + 1 + MAX_STEPS)
    steps = [quote for quote in ranked if quote.rank == best.rank and quote.heading == best.heading]
    steps = [quote for quote in steps if quote.place in following and has_kind(kind, quote.lead, quote.heading)]
    return sorted(steps, key=lambda quote: quote.place)
