"""A question that names what the document of the best sentence never mentions has no answer there."""

import pytest

from agent.turn.answerability import speaks_of
from agent.turn.quotes import find_quotes
from schemas.records import Passage
from schemas.tuning import AnswerTuning

ROUTER = Passage("home/router-notes.txt:1", "The password of the guest network is on the router.", "Network")
CAT = Passage("home/cat-pixel.txt:1", "Feed her twice a day. The vet is Dr Rupp.", "For whoever feeds her")


@pytest.mark.parametrize(
    ("question", "passage", "expected"),
    [
        ("What is the password of the guest network?", ROUTER, True),
        ("What was the password at the Castagna?", ROUTER, False),
        ("Which food does Pixel get?", CAT, True),
        ("Which food does Rex get?", CAT, False),
        ("What is her blood group?", CAT, False),
        ("When is Pixel's birthday?", CAT, False),
        ("Who is Pixel's vet?", CAT, True),
        ("What is the vet's phone number?", CAT, True),
        ("Who feeds her on Monday in March?", CAT, True),
        ("Wie ist das Passwort im Hotel?", ROUTER, True),
        ("Where is the Wi-Fi password?", ROUTER, True),
    ],
)
def test_names_and_attributes_must_be_mentioned(question: str, passage: Passage, expected: bool) -> None:
    (quote, *_) = find_quotes([passage], AnswerTuning())
    assert speaks_of(question, quote, [ROUTER, CAT] if passage is ROUTER else [CAT]) == expected
