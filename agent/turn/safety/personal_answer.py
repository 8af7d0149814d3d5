"""The answer for this person: nothing recommended that they must avoid, warnings first, and said how it came about.

What was left out is mentioned only where it would have answered: a question about trains hears nothing of peanuts.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from agent.models.protocol import Conversation
from agent.turn.answer_writing import Writer, generate_responses
from agent.turn.attribution import supporting_ids
from agent.turn.extractive_answer import LengthLimit, extract_answer, says_not_found
from agent.turn.interface_sentences import SENTENCES, InterfaceSentences, choose_sentences, say_why
from agent.turn.quote_ranking import rank_quotes
from agent.turn.quotes import find_quotes, truncate_words
from agent.turn.safety.dishes import is_of
from agent.turn.safety.personal_safety import LeftOut, Review
from indexes.documents.chunking import end_with_full_stop
from indexes.ranking.vectors import Embedder
from indexes.text.analysis import ENGLISH
from indexes.text.response_length import MAX_TOKENS, leading_within_limit
from schemas.records import Passage, Plan, Query, Response, ScoredStatement, Sentence, Statement
from schemas.tuning import Tuning

NEAR = 0.6  # of the score of what was left out: what is left has as much, or is beside the question
MAX_WARNING_WORDS = 60  # of a longer sentence, which is a list, the beginning


@dataclass(frozen=True, slots=True)
class PersonalAnswer:
    """Responses, best first, and what they were made of."""

    responses: tuple[Response, ...]
    selected_statements: tuple[ScoredStatement, ...]  # with those that led to a warning or to something being left out
    passages: tuple[Passage, ...]  # shown to the answer step, or cited


@dataclass(frozen=True, slots=True)
class Heeded:
    """What one response has to say for the person's safety."""

    left_out: tuple[LeftOut, ...]
    warnings: tuple[Sentence, ...]
    statements: tuple[Statement, ...]
    conflict: bool  # whether everything found conflicts
    noted: tuple[LeftOut, ...] = ()  # what is told of and has what the person must avoid, without a warning of its own


def answer_for_person(
    query: Query,
    conversation: Conversation,
    selected_statements: tuple[ScoredStatement, ...],
    review: Review,
    writer: Writer,
    embedder: Embedder | None,
    plan: Plan,
) -> PersonalAnswer:
    """What `generate_responses` makes of the passages that are left, with what the person has to be told first.

    Where there may be such a thing, nothing is shown before the whole is there.
    """
    has_to_heed = bool(review.left_out or review.warnings or review.noted)
    writer = replace(writer, show=None) if has_to_heed else writer
    responses = generate_responses(query, conversation, selected_statements, review.kept, writer, embedder, plan)
    if not responses or not has_to_heed:
        return PersonalAnswer(responses, selected_statements, review.kept)
    unsafe = [passage for dish in review.left_out for passage in dish.passages]
    all_near = replace(plan.tuning.answer, brief_margin=math.inf, other_document_gap=math.inf)
    tuning = replace(plan.tuning, answer=all_near)
    unheeded = extract_answer(query, selected_statements, unsafe, embedder, LengthLimit(MAX_TOKENS), tuning)
    fits = not plan.address_person or _is_near(query, selected_statements, review.kept, unsafe, embedder, plan.tuning)
    found = [find_heeded(response, unheeded, review, answers=fits and has_answer(response)) for response in responses]
    said_in = choose_sentences((*query.earlier_utterances, query.utterance)) if plan.address_person else None
    safe, heeded = _put_safety_first_in_all(responses, found, plan, said_in)
    known = {"", *(scored.statement.id for scored in selected_statements)}
    told = dict.fromkeys(each for what in heeded for each in what.statements if each.id not in known)
    statements = (*(ScoredStatement(each, 1.0) for each in told), *selected_statements)
    cited = [id for response in safe for id in response.used]
    shown = dict.fromkeys((*(each.id for each in review.kept), *cited))
    whole = {passage.id: passage for passage in review.passages}
    return PersonalAnswer(safe, statements, tuple(whole[id] for id in shown))


def _put_safety_first_in_all(
    responses: Sequence[Response], found: Sequence[Heeded], plan: Plan, said_in: InterfaceSentences | None
) -> tuple[tuple[Response, ...], list[Heeded]]:
    """As many of the responses as leave room for every warning: the fewer there are, the longer each may be."""
    for count in range(len(responses), 0, -1):
        heeded = _share_warnings(responses[:count], found[:count])
        tokens = min(MAX_TOKENS, plan.response_tokens * plan.responses // count)
        safe = tuple(
            put_safety_first(response, what, tokens, said_in)
            for response, what in zip(responses[:count], heeded, strict=True)
        )
        warned = zip(safe, heeded, strict=True)
        if all(_cut_long(warning) in response.sentences for response, what in warned for warning in what.warnings):
            break
    return safe, heeded


def _is_near(
    query: Query,
    selected_statements: Sequence[ScoredStatement],
    kept: Sequence[Passage],
    unsafe: Sequence[Passage],
    embedder: Embedder | None,
    tuning: Tuning,
) -> bool:
    """Whether what is left comes about as near to the question as what was left out: a pie is no answer for a drink.

    Without an embedding model that cannot be told.
    """
    if embedder is None or not kept or not unsafe:
        return True
    sides = [find_quotes(passages, tuning.answer) for passages in (kept, unsafe)]
    numbered = [replace(quote, rank=side) for side, quotes in enumerate(sides) for quote in quotes]
    untied = replace(tuning, answer=replace(tuning.answer, rank_penalty=0.0, reading_weight=0.0))
    ranked, _ = rank_quotes(numbered, query, selected_statements, embedder, untied)
    left, lost = (max((quote.score for quote in ranked if quote.rank == side), default=0.0) for side in (0, 1))
    return left >= NEAR * lost


def find_heeded(response: Response, unheeded: Response, review: Review, *, answers: bool) -> Heeded:
    """What was left out of an answer that would have been in it (`unheeded`), and the warnings of what either cites.

    `answers`: whether the response does, as well as can be expected.
    """
    lost = _find_lost(unheeded, review) if has_answer(unheeded) or not answers else ()
    conflict = bool(lost) and not answers
    cited = {review.dishes[id] for id in (() if conflict else response.used)} | set(map(review.dish_of, lost))
    warned = [
        pair for pair in review.warnings if any(is_of(review.dishes[pair[0].passage_ids[0]], dish) for dish in cited)
    ]
    said: dict[str, tuple[str, ...]] = {}  # a warning that several dishes have is said once
    for warning, _ in warned:
        said[warning.text] = (*said.get(warning.text, ()), *warning.passage_ids)
    warnings = tuple(Sentence(text, ids) for text, ids in said.items())
    noted = () if conflict else tuple(_find_noted(response, review, warnings))
    told = (*(each.statement for each in lost), *(statement for _, statement in warned), *(n.statement for n in noted))
    return Heeded(lost, warnings, tuple(dict.fromkeys(told)), conflict, noted)


def _find_noted(response: Response, review: Review, warnings: Sequence[Sentence]) -> Iterator[LeftOut]:
    """The dishes that are told of without a warning, and without a word of what the person must avoid in them."""
    warned = {review.dishes[id] for warning in warnings for id in warning.passage_ids}
    for each in review.noted:
        is_told = any(supporting_ids(said.text, each.passages) for said in response.sentences if said.passage_ids)
        is_named = each.thing in response.text.lower() if each.thing else False
        if is_told and not is_named and review.dish_of(each) not in warned:
            yield each


def _share_warnings(responses: Sequence[Response], heeded: Sequence[Heeded]) -> list[Heeded]:
    """Each warning in one response, so that they cite different passages: in the one that cites its own, if any."""
    owners: dict[Sentence, int] = {}
    for place, what in enumerate(heeded):
        for warning in what.warnings:
            citing = [n for n, response in enumerate(responses) if set(warning.passage_ids) & set(response.used)]
            owners.setdefault(warning, (citing or [place])[0])
    return [
        replace(what, warnings=tuple(warning for warning, owner in owners.items() if owner == place))
        for place, what in enumerate(heeded)
    ]


def has_answer(response: Response) -> bool:
    """Whether a response answers, and does not only say what comes nearest."""
    return bool(response.used) and not says_not_found(response)


def _find_lost(unheeded: Response, review: Review) -> tuple[LeftOut, ...]:
    """The dishes left out that would have been cited; where they have no answer, all if they have the best passage."""
    if has_answer(unheeded):
        would_cite = {review.dishes[id] for id in unheeded.used}
        return tuple(each for each in review.left_out if review.dish_of(each) in would_cite)
    lost = {passage.id for each in review.left_out for passage in each.passages}
    return review.left_out if not review.kept or review.passages[0].id in lost else ()


def put_safety_first(
    response: Response, heeded: Heeded, tokens: int, said_in: InterfaceSentences | None = None
) -> Response:
    """An answer with what is to be heeded in front. Of `tokens`, warnings have theirs first.

    `said_in` is the language in which it is said to the person how it came about; None where it is not said.
    Where everything conflicts, nothing of the answer is left: what conflicts is named, and warnings of it are quoted.
    A run, where every response has to cite something, quotes what comes nearest, else what conflicts, and says that.
    """
    warnings = list(dict.fromkeys(map(_cut_long, heeded.warnings)))
    if heeded.conflict and not warnings and not said_in:
        if response.used:
            return response
        warnings = [_cut_long(each.reason) for each in heeded.left_out if each.reason.text][:2]
        said_in = SENTENCES[ENGLISH]
    phrases = [Sentence(text, ()) for text in _say_why(heeded, said_in)] if said_in else []
    first = list(dict.fromkeys((*phrases, *warnings)))
    if not first:
        return response
    if says_not_found(response) and not heeded.conflict:  # what comes nearest has warnings
        first.insert(0, response.sentences[0])
    texts = {sentence.text for sentence in first}
    own = () if heeded.conflict else (each for each in response.sentences if each.text not in texts)
    whole = (*first, *own)
    fitting = leading_within_limit((sentence.text for sentence in whole), tokens)
    if len(fitting) < len(first):  # warnings that only fit without the phrases
        whole = tuple(warnings)
        fitting = leading_within_limit((sentence.text for sentence in whole), tokens)
    if not fitting:  # of what is too long by itself, its beginning
        longest = (*warnings, *first)[0]
        return Response((replace(longest, text=truncate_words(longest.text, tokens, MAX_WARNING_WORDS)),))
    return Response(whole[: len(fitting)])


def _say_why(heeded: Heeded, said_in: InterfaceSentences) -> Iterator[str]:
    """In one sentence, what the person said, and what came of it."""
    for text in dict.fromkeys(each.statement.text for each in heeded.noted):
        named = [each.named for each in heeded.noted if each.statement.text == text]
        yield say_why(said_in.careful, [text], named, said_in)
    if not heeded.left_out:
        return
    statements = [each.text for each in dict.fromkeys(each.statement for each in heeded.left_out)]
    speaking = [each for each in heeded.left_out if each.reason.passage_ids[0] in {own.id for own in each.passages}]
    if heeded.conflict:
        yield say_why(said_in.conflict, statements, [each.named for each in speaking or heeded.left_out], said_in)
        return
    for text in statements:
        dishes = [each.title for each in speaking or heeded.left_out if each.statement.text == text]
        if dishes:
            yield say_why(said_in.left_out, [text], dishes, said_in)


def _cut_long(sentence: Sentence) -> Sentence:
    """A sentence as it is quoted: with a full stop; of a very long one, the beginning."""
    text = truncate_words(sentence.text, 2 * MAX_WARNING_WORDS, MAX_WARNING_WORDS) or sentence.text
    return replace(sentence, text=end_with_full_stop(text))
