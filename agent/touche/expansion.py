"""Words that a question lacks: those of a hypothetical answer by the model, as in conversational search.

The best run of 2020 took its words from a language model that went on with the question (Akiki and Potthast 2020).
"""

import prompts
from agent.llm.seam import LLM, Conversation
from agent.rewrite import rewrite
from agent.search import ANSWER
from agent.touche.topics import Question
from indexes.passages import Weighted
from schemas.records import Message, Plan

ANSWERS = Plan(query=("answer",))  # one, of the usual length, always the same


def expanded(question: Question, llm: LLM) -> list[Weighted]:
    """The question and what the model would answer out of hand, whose words weigh less."""
    conversation = Conversation(prompts.render("system").instruction, (Message("user", question.title),))
    answers = rewrite(conversation, llm, ANSWERS).answers
    return [(question.title, 1.0), *((answer, ANSWER / len(answers)) for answer in answers)]
