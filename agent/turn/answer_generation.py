"""The answer: sentences, each with the passages that support it.

A small model picks sentences from the passages (`agent/turn/extractive_answer.py`); one that is large enough writes
freely (`agent/turn/answer_writing.py`). Either way every sentence is held against the passages that it names.
"""

from collections.abc import Sequence

from agent.models.protocol import Conversation, LanguageModel
from agent.turn.answer_writing import Writer, write_response
from agent.turn.extractive_answer import LengthLimit, extract_answer, say_nothing_found, says_not_found
from indexes.ranking.vectors import Embed
from schemas.records import Passage, Plan, Query, Response, ScoredStatement, Sentence


def generate_responses(
    query: Query,
    conversation: Conversation,
    selected_statements: Sequence[ScoredStatement],
    passages: Sequence[Passage],
    writer: Writer,
    embed: Embed | None,
    plan: Plan,
) -> tuple[Response, ...]:
    """The wanted number of answers, best first, each as long as the plan allows.

    They cite only `passages`. A further answer is built from passages that none before it cites. Where no passage has
    an answer, the only response says so, also where there is no passage.
    """
    if not plan.parts.answer:
        return ()
    limit = LengthLimit(plan.words, plan.response_tokens)
    responses: list[Response] = []
    not_found = Response(())
    left = list(passages)
    while left and len(responses) < plan.responses:
        shown = left[: plan.context_passages]
        response = Response(())
        if is_writer(writer.llm, plan):
            response = write_response(conversation, selected_statements, shown, writer, embed, limit, plan)
        if not response.sentences:
            response = extract_answer(query, selected_statements, shown, embed, limit, plan.tuning)
        if response.used and not says_not_found(response):
            responses.append(response)
            left = [passage for passage in left if passage.id not in response.used]
        else:
            not_found = not_found if not_found.sentences else response
            left = left[len(shown) :]
    if not (responses or not_found.used):  # not even anything that comes near
        not_found = Response((Sentence(say_nothing_found(query, plan.tuning.answer), ()),))
    return tuple(responses) or (not_found,)


def is_writer(llm: LanguageModel, plan: Plan) -> bool:
    """Whether the model writes the answer itself; else sentences of the passages are chosen."""
    return llm.generates_text and (plan.answer == "write" or (plan.answer == "auto" and llm.writes_answers))
