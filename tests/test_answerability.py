"""A question that names what the document of the best sentence never mentions has no answer there."""

import pytest

from agent.turn.answerability import find_asked_thing, has_part_in_common, has_what_is_asked, is_made_of, speaks_of
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


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        ("What did the roof box cost?", "Grey box from Mira, 50 kg at most.", False),
        ("What did the roof box cost?", "Grey box, bought for 120 EUR.", True),
        ("How many calories has it?", "300 g of rice and a glass of wine.", False),
        ("Who feeds the cat?", "She is fed twice a day.", False),
        ("Is the cat fed twice?", "She is fed in the morning.", True),
        ("When is the gate locked?", "The gate is locked at nine in the evening.", True),
        ("When is the gate locked?", "The gate is locked with a chain.", False),
        ("How old is the boiler?", "The boiler was fitted in 2021.", True),
        ("How old is the boiler?", "The boiler is red.", False),
        ("Who is dev?", "Dev, the caretaker, opens the shed.", True),
        ("Wie hoch ist die Jahrespacht?", "Die Jahrespacht beträgt 180 Euro.", True),
        ("Wie hoch ist die Jahrespacht?", "Die Hecke ist 1,20 m hoch.", False),
        ("What does the service cost?", "Brandl does the service. It costs 140 euros.", True),
        ("What does the service cost?", "Brandl does the service. A lamp costs 140 euros.", False),
    ],
)
def test_what_has_no_amount_is_no_answer_to_how_much(question: str, text: str, expected: bool) -> None:
    (quote, *_) = find_quotes([Passage("notes.md:1", text)], AnswerTuning())
    assert has_what_is_asked(question, quote, [Passage("notes.md:1", text)]) == expected


@pytest.mark.parametrize(
    ("question", "thing"),
    [
        ("What does a lost bicycle cost?", "bicycle"),
        ("How big is the bathtub?", "bathtub"),
        ("What is the phone number of the electrician?", "electrician"),
        ("When is the gate locked?", "gate"),
        ("Wie hoch ist die Jahrespacht?", "jahrespacht"),
        ("Wie heißt der Hund von Familie Rask?", "hund"),
        ("When is the soonest I can leave?", ""),
        ("How long are our belongings covered by it?", ""),
        ("How much is it?", ""),
        ("Who feeds the cat?", ""),
        ("How do I get red wine out of a carpet?", "carpet"),
        ("How do I get the float of the pump loose?", ""),
    ],
)
def test_what_an_amount_is_asked_of(question: str, thing: str) -> None:
    assert find_asked_thing(question) == thing


@pytest.mark.parametrize(
    ("word", "others", "has_part", "is_made"),
    [
        ("jahrespacht", ["pacht"], True, False),
        ("heizungswartung", ["wartung", "heizung"], True, True),
        ("honigglas", ["honig", "glas"], True, True),
        ("honigglas", ["glas"], False, False),
        ("schrebergarten", ["gartenordnung"], True, False),
        ("garten", ["gärtner", "gart"], False, False),
        ("keller", ["fahrradkeller"], True, False),
    ],
)
def test_parts_of_compounds(word: str, others: list[str], has_part: bool, is_made: bool) -> None:
    assert (has_part_in_common(word, others), is_made_of(word, others)) == (has_part, is_made)
