"""What is being done for an answer, told to the person who waits for it."""

from schemas.records import Call

TOLD = {
    "imagine": "imagined what an answer might say",
    "context": "looked for what the question refers to",
    "rewrite": "made the question stand alone",
    "statements": "weighed what is known about you",
    "write": "wrote the answer",
}


def told(call: Call) -> str:
    """A call in a few words."""
    if call.verb == "search":
        return f"searched for “{call.prompt}”, {call.reply}"
    return TOLD.get(call.step, call.step)
