"""The steps of an answer in words, for the person who waits for it."""

from schemas.records import Call

STEP_MESSAGES = {
    "hyde": "thought of words to search for",
    "context": "looked for what the question refers to",
    "rewrite": "made the question stand alone",
    "statements": "weighed what is known about you",
    "write": "wrote the answer",
    "summarise": "wrote the summary",
    "correct": "wrote a sentence once more",
    "reword": "wrote the answer in another form",
}


def describe_call(call: Call) -> str:
    """A call in a few words."""
    if call.verb == "search":
        return f"searched for “{call.prompt}”, {call.reply}"
    return STEP_MESSAGES.get(call.step, call.step)
