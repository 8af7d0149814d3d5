"""A turn and the conversation it stands in as one text, for the encoder that was taught to read it."""

from schemas.records import Query

REPLY_WORDS = 100  # of the reply that the utterance follows: its beginning says what it is about
EARLIER = 4  # utterances before it, newest first; the first of all is always among them
SEPARATOR = " | "


def compose_conversation(query: Query) -> str:
    """The utterance, the beginning of the last reply, then the utterances before it, newest first."""
    earlier = query.earlier_utterances
    recent = list(reversed(earlier[-EARLIER:]))
    opening = list(earlier[:1]) if len(earlier) > EARLIER else []
    lead = " ".join(query.previous_reply.split()[:REPLY_WORDS])
    return SEPARATOR.join((query.utterance, lead, *recent, *opening))
