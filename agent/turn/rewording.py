"""An answer in another form ("shorter", "as a list", "in German"), from the passages that it cites and no others."""

from collections.abc import Sequence

import prompts
from agent.models.protocol import Conversation, LanguageModel, Task
from agent.turn.answer_writing import draft_schema, support_sentence
from schemas.errors import ModelError
from schemas.records import Passage, Plan, Response, Sentence


def reword_response(
    conversation: Conversation, response: Response, passages: Sequence[Passage], llm: LanguageModel, plan: Plan
) -> Response:
    """The response as the last message asks for it; empty where the model fails or a sentence of its is unsupported."""
    numbered = {str(n): passage for n, passage in enumerate(passages, start=1)}
    prompt = prompts.render("reword", passages=numbered, answer=response.text)
    task = Task("reword", prompt.instruction, prompt.opening, max_tokens=2 * plan.response_tokens)
    sentences: dict[Sentence, None] = {}
    try:
        for written in llm.ask(conversation, task, draft_schema(tuple(numbered))).sentences:
            sentence = support_sentence(written, numbered, conversation, llm)
            if not sentence.passage_ids:
                return Response(())
            sentences[sentence] = None
    except ModelError:
        return Response(())
    return Response(tuple(sentences))
