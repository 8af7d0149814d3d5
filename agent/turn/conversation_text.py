"""A turn and the conversation it stands in as one text, for the models that were taught to read it (`training/`)."""

from schemas.records import Query

REPLY_WORDS = 60  # of the reply that the utterance follows: its beginning says what it is about
EARLIER = 4  # utterances before it, newest first; the first of all is always among them
SEPARATOR = " | "
REWRITER_EARLIER = 3  # utterances before it that the rewriter reads, in their order; the first is always among them


def compose_conversation(query: Query) -> str:
    """The utterance, the beginning of the last reply, then the utterances before it, newest first."""
    earlier = query.earlier_utterances
    opening = earlier[:1] if len(earlier) > EARLIER else ()
    lead = " ".join(query.previous_reply.split()[:REPLY_WORDS])
    return SEPARATOR.join((query.utterance, lead, *reversed(earlier[-EARLIER:]), *opening))


def compose_rewriter_prompt(query: Query) -> str:
    """The utterances before, the beginning of the last reply, the utterance, and what to do with it."""
    earlier = query.earlier_utterances
    opening = earlier[:1] if len(earlier) > REWRITER_EARLIER else ()
    lines = [f"Q: {text}" for text in (*opening, *earlier[-REWRITER_EARLIER:])]
    if query.previous_reply:
        lines.append(f"A: {' '.join(query.previous_reply.split()[:REPLY_WORDS])}")
    return "\n".join([*lines, f"Q: {query.utterance}", "Rewrite the last question so that it stands alone."])
