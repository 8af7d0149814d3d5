"""Expands a question by the words of a hypothetical answer of the model, as in conversational search.

The best run of 2020 took its words from a language model that continued the question (Akiki and Potthast 2020).
"""

import prompts
from agent.models.protocol import Conversation, LanguageModel
from agent.tasks.touche.topics import ControversialQuestion
from agent.turn.query_rewriting import generate_hypothetical_answers
from indexes.text.analysis import WeightedText
from schemas.records import Message, Plan

ANSWERS = Plan(query=("hyde",))  # one, of the usual length, always the same


def expand_query(question: ControversialQuestion, llm: LanguageModel) -> list[WeightedText]:
    """The question and what the model would answer without reading anything; the answer's words weigh less."""
    conversation = Conversation(prompts.render("system").instruction, (Message("user", question.title),))
    answers = generate_hypothetical_answers(conversation, llm, ANSWERS)
    weight = ANSWERS.tuning.retrieval.hyde_weight
    return [(question.title, 1.0), *((answer, weight / len(answers)) for answer in answers)]
