"""What a person asks to have written: a reply, a translation, an explanation in plainer words.

A model that writes does it from passages; what it says that neither they nor the request have, numbers and names, is
named below. One that only chooses sentences cannot, and says so.
"""

import re
from collections.abc import Sequence

import prompts
from agent.models.protocol import Conversation, Task, strip_thinking
from agent.turn.attribution import content_words
from agent.turn.question_words import find_names
from agent.turn.writing.checked_answer import Writer
from indexes.text.analysis import ENGLISH
from indexes.text.languages import find_question_language
from indexes.text.response_length import leading_within_limit
from indexes.text.sentences import split_sentences
from schemas.records import Message, Passage, Plan, Query, Response, Sentence

_POLITE = r"(?:please |can you |could you |would you |i need |help me (?:to )?)*"
_PIECE = r"(?:reply|answer|response|mail|e-?mail|message|letter|note|invitation|reminder|text|post)"
_PLAIN = r"(?:in|with) (?:\w+ )?(?:simpler?|plain(?:er)?|eas(?:y|ier)) (?:words|terms|language|english)"
_REQUEST = re.compile(
    rf"{_POLITE}(?:translate (?P<translated>.+?) (?:in|to|into) \w+|(?:draft|write|compose) (?:me |us )?(?:an? |the )?"
    rf"(?:\w+ )?{_PIECE}\b(?: to (?P<answered>.+?))?(?: (?:that|saying|and|asking|about|in|on|for) .*)?"
    rf"|(?:explain|put|say|rewrite|rephrase) (?P<explained>.+?) {_PLAIN})",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+(?:[.,:]\d+)*")
MIN_NAME = 3  # letters
CANNOT = "This model quotes documents; it cannot translate or write. `convagent model list` shows models that can."
ENDING = "Written by the model from what is cited: read it before you use it."


def find_request(utterance: str) -> str | None:
    """What is to be translated, answered or explained, "" where that is not said; None for any other utterance."""
    found = _REQUEST.fullmatch(" ".join(utterance.split()).rstrip(" ?!."))
    return next(filter(None, found.groups()), "") if found else None


def write_draft(query: Query, passages: Sequence[Passage], writer: Writer, plan: Plan) -> Response:
    """What is asked for, and what of it is not in the documents. Raises `ModelError` where the model fails."""
    texts = [f"{passage.title}: {passage.text}" for passage in passages]
    lines = [line for text in texts for line in text.splitlines()]
    asked = prompts.render("draft", request=query.standalone, lines=lines).instruction
    conversation = Conversation(prompts.render("system").instruction, (Message("user", asked),))
    written = strip_thinking(writer.llm.ask(conversation, Task("write", max_tokens=plan.response_tokens), str))
    own = find_unknown(written, [query.standalone, *texts])
    notes = [f"Not in the documents: {', '.join(own)}."] if own else []
    said = leading_within_limit(split_sentences(written.strip()), plan.response_tokens)
    ids = tuple(passage.id for passage in passages)
    return Response((*(Sentence(each, ()) for each in (*said, *notes)), Sentence(ENDING, ids)))


def find_unknown(written: str, known: Sequence[str]) -> list[str]:
    """The numbers in a text that others do not have; in English, where nouns have no capitals, the names, too."""
    held = {word.stem for text in known for word in content_words(text)}
    names = find_names(written) if find_question_language(written) in ("", ENGLISH) else frozenset[str]()
    words = dict.fromkeys(word for word in _WORD.findall(written) if word[0].isdigit() or len(word) >= MIN_NAME)
    stems = ((word, [each.stem for each in content_words(word)]) for word in words)
    return [word for word, own in stems if own and own[0] not in held and (own[0][0].isdigit() or own[0] in names)]
