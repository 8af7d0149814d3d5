"""The answer for this person: nothing recommended that they must avoid, warnings first, and said how it came about.

What was left out is mentioned only where it would have answered: a question about trains hears nothing of peanuts.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from agent.turn.attribution import supporting_ids
from agent.turn.extractive_answer import extract_answer, says_not_found
from agent.turn.interface_sentences import SENTENCES, InterfaceSentences, choose_sentences, say_why
from agent.turn.quote_ranking import rank_quotes
from agent.turn.quotes import find_quotes, truncate_words
from agent.turn.safety.review import LeftOut, Review, is_of
from agent.turn.writing.checked_answer import Writer
from agent.turn.writing.responses import generate_responses
from indexes.documents.chunking import end_with_full_stop
from indexes.ranking.vectors import Embedder
from indexes.text.analysis import ENGLISH
from indexes.text.response_length import MAX_TOKENS, leading_within_limit
from schemas.records import Passage, Plan, Query, Response, ScoredStatement, Sentence, Statement
from schemas.tuning import Tuning

NEAR = 0.6  # of the score of what was left out: what is left has as much, or is beside the question
ALL_NEAR = 0.4  # how far behind the best of what was left out the others may be, by meaning
MAX_WARNING_WORDS = 60  # of a longer sentence, which is a list, the beginning


@dataclass(frozen=True, slots=True)
class PersonalAnswer:
    """Responses, best first, and what they were made of."""

    responses: tuple[Response, ...]
    selected_statements: tuple[ScoredStatement, ...]  # with those that led to a warning or to something being left out
    passages: tuple[Passage, ...]  # shown to the answer step, or cited


@dataclass(frozen=True, slots=True)
class Heeded:
    """What a response has to say for the person's safety."""

    left_out: tuple[LeftOut, ...]
    warnings: tuple[Sentence, ...]
    statements: tuple[Statement, ...]
    conflict: bool  # whether everything found conflicts
    noted: tuple[LeftOut, ...] = ()  # what is told of and has what the person must avoid, without a warning of its own


def answer_for_person(
    query: Query,
    selected_statements: tuple[ScoredStatement, ...],
    review: Review,
    writer: Writer,
    embedder: Embedder | None,
    plan: Plan,
) -> PersonalAnswer:
    """What `generate_responses` makes of the passages that are left, with what the person has to be told first.

    Where there may be such a thing, sentences are quoted, and nothing is shown before the whole is there.
    """
    has_to_heed = bool(review.left_out or review.warnings or review.noted)
    writer = replace(writer, show=None, quotes=True) if has_to_heed else writer
    responses = generate_responses(query, selected_statements, review.kept, writer, embedder, plan)
    if not responses or not has_to_heed:
        return PersonalAnswer(responses, selected_statements, review.kept)
    unsafe = [passage for dish in review.left_out for passage in dish.passages]
    all_near = replace(plan.tuning.answer, all_within=ALL_NEAR)
    longest = replace(plan, words=MAX_TOKENS, response_tokens=MAX_TOKENS, tuning=replace(plan.tuning, answer=all_near))
    unheeded = extract_answer(query, selected_statements, unsafe, embedder, longest)
    fits = not plan.address_person or _is_near(query, selected_statements, review.kept, unsafe, embedder, plan.tuning)
    found = [find_heeded(response, unheeded, review, answers=fits and has_answer(response)) for response in responses]
    said_in = choose_sentences((*query.earlier_utterances, query.utterance)) if plan.address_person else None
    safe = _put_safety_first_in_all(responses, found, plan, said_in)
    known = {"", *(scored.statement.id for scored in selected_statements)}
    told = (each for what in found[: len(safe)] for each in what.statements)
    led = (ScoredStatement(each, 1.0) for each in dict.fromkeys(told) if each.id not in known)
    whole = {passage.id: passage for passage in review.passages}
    cited = (id for response in safe for id in response.used)
    shown = dict.fromkeys((*(each.id for each in review.kept), *cited))
    return PersonalAnswer(safe, (*led, *selected_statements), tuple(whole[id] for id in shown))


def _put_safety_first_in_all(
    responses: Sequence[Response], found: Sequence[Heeded], plan: Plan, said_in: InterfaceSentences | None
) -> tuple[Response, ...]:
    """The responses that have room for their warnings, each warning once, and cite different passages.

    The best one alone where that needs the room of all.
    """
    safe, told, cited = list[Response](), set[str](), set[str]()
    for response, what in zip(responses, found, strict=True):
        elsewhere = cited.union(*(other.used for other in responses if other is not response))
        untold = (each for each in what.warnings if _cut_long(each).text not in told)
        warnings = tuple(_cite_outside(each, elsewhere) for each in untold)
        left = tuple(each for each in response.sentences if cited.isdisjoint(each.passage_ids))
        rest = replace(response, sentences=left)
        made = put_safety_first(rest, replace(what, warnings=warnings), plan.response_tokens, said_in)
        texts = {sentence.text for sentence in made.sentences}
        is_whole = all(_cut_long(each).text in texts for each in warnings)
        if not is_whole and not safe:
            tokens = min(MAX_TOKENS, plan.response_tokens * plan.responses)
            return (put_safety_first(response, what, tokens, said_in),)
        if is_whole and (made.used or not safe) and cited.isdisjoint(made.used):
            safe, told, cited = [*safe, made], told | texts, cited | set(made.used)
    return tuple(safe)


def _cite_outside(warning: Sentence, elsewhere: Collection[str]) -> Sentence:
    """A warning that stands in several passages, cited from those that no other response cites, where there are any."""
    own = tuple(id for id in warning.passage_ids if id not in elsewhere)
    return replace(warning, passage_ids=own or warning.passage_ids)


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
    cited = {review.dishes[id] for id in (() if conflict else response.used)} | {each.dish for each in lost}
    found = [
        pair for pair in review.warnings if any(is_of(review.dishes[pair[0].passage_ids[0]], dish) for dish in cited)
    ]
    said: dict[str, tuple[str, ...]] = {}  # a warning that several dishes have is said once
    for warning, _ in found:
        said[warning.text] = (*said.get(warning.text, ()), *warning.passage_ids)
    warned = {review.dishes[id] for ids in said.values() for id in ids}
    noted = () if conflict else tuple(each for each in review.noted if _is_to_note(each, response, warned))
    told = (*(each.statement for each in lost), *(statement for _, statement in found), *(n.statement for n in noted))
    warnings = tuple(Sentence(text, ids) for text, ids in said.items())
    return Heeded(lost, warnings, tuple(dict.fromkeys(told)), conflict, noted)


def _is_to_note(each: LeftOut, response: Response, warned: set[str]) -> bool:
    """Whether a dish is told of without a warning, and without a word of what the person must avoid in it."""
    is_told = any(supporting_ids(said.text, each.passages) for said in response.sentences if said.passage_ids)
    is_named = each.thing in response.text.lower() if each.thing else False
    return is_told and not is_named and each.dish not in warned


def has_answer(response: Response) -> bool:
    """Whether a response answers, and does not only say what comes nearest."""
    return bool(response.used) and not says_not_found(response)


def _find_lost(unheeded: Response, review: Review) -> tuple[LeftOut, ...]:
    """The dishes left out that would have been cited; where they have no answer, all if they have the best passage."""
    if has_answer(unheeded):
        would_cite = {review.dishes[id] for id in unheeded.used}
        return tuple(each for each in review.left_out if each.dish in would_cite)
    lost = {passage.id for each in review.left_out for passage in each.passages}
    return review.left_out if not review.kept or review.passages[0].id in lost else ()


def put_safety_first(response: Response, heeded: Heeded, tokens: int, said_in: InterfaceSentences | None) -> Response:
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
    first = [*phrases, *warnings]
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
    speaking = [each for each in heeded.left_out if each.reason.passage_ids[0] in {own.id for own in each.passages}]
    left_out = [] if heeded.conflict else speaking or list(heeded.left_out)
    for sentence, dishes in ((said_in.careful, heeded.noted), (said_in.left_out, left_out)):
        for text in dict.fromkeys(each.statement.text for each in dishes):
            of_statement = [each for each in dishes if each.statement.text == text]
            names = [each.named if sentence == said_in.careful else each.title for each in of_statement]
            yield say_why(sentence, [text], names, said_in)
    if heeded.conflict:
        statements = list(dict.fromkeys(each.statement.text for each in heeded.left_out))
        yield say_why(said_in.conflict, statements, [each.named for each in speaking or heeded.left_out], said_in)


def _cut_long(sentence: Sentence) -> Sentence:
    """A sentence as it is quoted: with a full stop; of a very long one, the beginning."""
    text = truncate_words(sentence.text, 2 * MAX_WARNING_WORDS, MAX_WARNING_WORDS) or sentence.text
    return replace(sentence, text=end_with_full_stop(text))
