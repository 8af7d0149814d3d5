"""What of a conversation joins the next question: what was asked for, and nothing where the subject changes."""

from agent.chat.session import PLAN, find_subject, to_history
from agent.chat.store import ChatTurn
from agent.models.protocol import Conversation
from agent.models.registry import open_model
from agent.turn.interface_sentences import NOT_FOUND
from agent.turn.query_rewriting import rewrite_query
from agent.turn.question_words import asks_of_another, leans_on_conversation
from schemas.records import Message, Passage, Query, Response, Sentence, TurnResult

BREAD = Passage(
    "bread.md:1", "# Keeping\nWrapped in a cloth it keeps for nine days. Rosa Tamm gave us the wheat flour.", "Bread"
)


OF_ANOTHER = """
And the timing belt? | What about Switzerland? | Und der Keller? | And in 2023?"""
LEANING = """
How long does it keep? | And if it happens again? | And why? | Since when? | At what time? | Why? | Which survive
frost? | Which ones are cheaper? | Which dog is an exception? | Which of the two is cheaper? | Is it allowed
there? | Et à quelle température ? | Y cuánto cuesta eso? | E quanto dura la visita? | En hoe lang duurt het?"""
ALONE = """
Who is the class teacher? | When does the car need new oil? | Why did the synchronisation break down in March? |
Which materials are toxic? | Was kostet der zweite Ersatztermin? | Quando comincia il corso di nuoto dei bambini? |
¿En qué calle está la escuela de música?"""


def test_what_leans_on_the_conversation() -> None:
    for utterances, leans, of_another in ((OF_ANOTHER, True, True), (LEANING, True, False), (ALONE, False, False)):
        for utterance in " ".join(utterances.split()).split(" | "):
            assert leans_on_conversation(utterance) == leans, utterance
            assert asks_of_another(utterance) == of_another, utterance


def conversation(*texts: str) -> Conversation:
    roles = ("user", "assistant")
    return Conversation("", tuple(Message(roles[n % 2], text) for n, text in enumerate(texts)))  # type: ignore[arg-type]


def test_a_question_of_its_own_gets_nothing_of_the_conversation_in_a_chat() -> None:
    said = ("How much is the rent?", "The rent is 985 EUR a month.")
    alone = rewrite_query(conversation(*said, "Who is the class teacher?"), open_model("none"), PLAN)
    assert (alone.standalone, alone.context, alone.previous_reply) == ("Who is the class teacher?", (), "")
    leaning = rewrite_query(conversation(*said, "Since when is it due?"), open_model("none"), PLAN)
    assert "rent" in leaning.standalone
    assert leaning.previous_reply == said[1]
    other = rewrite_query(conversation(*said, "And the deposit?"), open_model("none"), PLAN)
    assert other.standalone == "And the deposit? (How much is the rent?)"


def chat_turn(*sentences: Sentence) -> ChatTurn:
    return ChatTurn("How long?", TurnResult("1", Query("How long?"), (), (), (BREAD,), (Response(sentences),)))


def test_only_the_sentence_that_answered_is_remembered_and_under_its_heading() -> None:
    keeps = Sentence("Wrapped in a cloth it keeps for nine days.", (BREAD.id,))
    noise = Sentence("Rosa Tamm gave us the wheat flour.", (BREAD.id,))
    answered = chat_turn(keeps, noise)
    assert "nine days" in find_subject(answered.answered)
    assert find_subject(answered.answered).startswith("Bread: ")
    assert "Rosa Tamm" not in find_subject(answered.answered)
    assert [message.text for message in to_history([answered], whole=True)][-1] == f"{keeps.text} {noise.text}"
    assert find_subject(chat_turn(Sentence(NOT_FOUND, ()), noise).answered) == ""
