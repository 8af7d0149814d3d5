"""The responses of a turn: written by the model where it can, of sentences that the passages hold where it cannot."""

from collections.abc import Sequence

from agent.turn.extractive_answer import choose_own_sentences, extract_answer, says_not_found, split_parts
from agent.turn.writing.checked_answer import Writer
from agent.turn.writing.reply import is_writer, write_response
from indexes.ranking.vectors import Embedder
from schemas.records import Passage, Plan, Query, Response, ScoredStatement, Sentence


def generate_responses(
    query: Query,
    selected_statements: Sequence[ScoredStatement],
    passages: Sequence[Passage],
    writer: Writer,
    embedder: Embedder | None,
    plan: Plan,
) -> tuple[Response, ...]:
    """The wanted number of answers, best first, each as long as the plan allows.

    They cite only `passages`. A further answer is built from passages that none before it cites. Where no passage has
    an answer, the only response says so, also where there is no passage.
    """
    if not plan.parts.answer:
        return ()
    responses: list[Response] = []
    not_found = Response(())
    left = list(passages)
    while left and len(responses) < plan.responses:
        shown = left[: plan.context_passages]
        response = extract_answer(query, selected_statements, shown, embedder, plan, writer.llm)
        is_whole = not split_parts(query.utterance)  # what asks twice is quoted: a reply would answer one of them
        if is_writer(writer, plan) and is_whole and response.used and not says_not_found(response):
            response = write_response(query, selected_statements, response, shown, writer, embedder, plan)
        if response.used and not says_not_found(response):
            responses.append(response)
            left = [passage for passage in left if passage.id not in response.used]
        else:
            not_found = not_found if not_found.sentences else response
            left = left[len(shown) :]
    if not (responses or not_found.used):  # not even anything that comes near
        not_found = Response((Sentence(choose_own_sentences(query, plan.tuning.answer).nothing, ()),))
    return tuple(responses) or (not_found,)
