"""Which quote stands first: of the newest edition, and in the language of the question."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from agent.chat.session import BRIEF
from agent.turn.answerability import score_surety
from agent.turn.extractive_answer import extract_answer, keep_likely
from agent.turn.quote_ranking import find_kinds, rank_quotes, weigh_chances
from agent.turn.quotes import Reading, find_quotes
from agent.turn.reading import UNREAD
from indexes.ranking.vectors import Embedder
from indexes.text.units import points_back
from schemas.records import Passage, Plan, Query
from schemas.tuning import AnswerTuning, Tuning
from tests.conftest import needs_embedder, read_cases


def first(embedder: Embedder, query: Query, *passages: Passage) -> str:
    return extract_answer(query, (), passages, embedder, Plan(tuning=BRIEF)).sentences[0].text


@pytest.mark.parametrize("text", ["It opens from 9 a.m. to 8 p.m.", "Slowed down to 64 kbit/s.", "Sold by Meyer & Co."])
def test_a_sentence_that_ends_with_an_abbreviation_can_be_quoted(text: str) -> None:
    (quote,) = find_quotes([Passage("a:1", text)], AnswerTuning())
    assert quote.texts == (text,)


def test_a_label_points_to_nothing() -> None:
    assert not points_back("Next: oil by 100,000 km.")
    assert points_back("Next the oil is changed.")


def test_a_quote_in_its_context_has_the_end_of_what_stands_before_it() -> None:
    sold, blue, paid = (
        "The boat was sold in May.",
        f"On the {'very ' * 22}last day it was blue.",
        "The price was paid at once.",
    )
    quotes = find_quotes([Passage("a:1", f"{sold} {blue} {paid}", "Boats")], AnswerTuning())
    assert [quote.in_context.split("\n") for quote in quotes] == [
        [f"Boats: {sold}"],
        [f"Boats: {sold}", blue],
        [f"Boats: {'very ' * 20}last day it was blue.", paid],
    ]


@pytest.mark.story
@needs_embedder
@pytest.mark.parametrize(("asked", "euros"), [("does a kayak cost guests", 14), ("did a kayak cost guests in 2022", 9)])
def test_of_two_editions_the_later_one_answers(minilm: Embedder, asked: str, euros: int) -> None:
    old = Passage("prices-2022.html:3", "A kayak costs guests 9 EUR an hour.", "Prices 2022")
    new = Passage("prices-2025.html:3", "A kayak costs guests 14 EUR an hour.", "Prices 2025")
    said = first(minilm, Query(f"What {asked}?"), old, new)
    assert said == f"A kayak costs guests {euros} EUR an hour."


@needs_embedder
@pytest.mark.parametrize(
    ("asked", "answer"),
    [("When is the fete?", "The fete is on 11 May."), ("What does tea cost?", "Tea costs 1.50.")],
)
def test_of_a_series_the_later_one_answers(minilm: Embedder, asked: str, answer: str) -> None:
    old = Passage("minutes 2 March.md:1", "The fete is on 4 May. Tea costs 1.50.", date="2026-03-02")
    new = Passage("minutes 6 April.md:1", "The fete is on 11 May.", date="2026-04-06")
    assert first(minilm, Query(asked), old, new) == answer


SERIES = read_cases("series")


@needs_embedder
@pytest.mark.parametrize(("folder", "asked", "answer"), SERIES["questions"])
def test_what_was_moved_or_raised_later_leads(minilm: Embedder, folder: str, asked: str, answer: str) -> None:
    passages = [Passage(**each) for each in SERIES["passages"][folder]]
    assert answer in first(minilm, Query(asked), *passages)


@pytest.mark.parametrize(("text", "kinds"), SERIES["kinds"])
def test_kinds_of_values(text: str, kinds: list[str]) -> None:
    assert sorted(find_kinds(text)) == kinds


@needs_embedder
def test_beyond_the_first_passages_only_what_surely_answers_is_quoted(minilm: Embedder) -> None:
    texts = {"a:1": "The shed is green.", "b:1": "A kayak costs guests 14 EUR an hour.", "c:1": "There is cake, too."}
    quotes = find_quotes([Passage(id, text) for id, text in texts.items()], AnswerTuning())
    for tuning, found in ((Tuning(answer=AnswerTuning(first_passages=1)), {"a", "b"}), (Tuning(), {"a", "b", "c"})):
        ranked, _ = rank_quotes(quotes, Query("What does a kayak cost guests?"), (), minilm, tuning)
        assert {quote.document for quote in ranked} == found


@needs_embedder
def test_what_merely_comes_near_is_no_part_of_the_answer(minilm: Embedder) -> None:
    skiff = "A skiff is what we call a small customer project. Summary. A barge is a large project."
    passages = [Passage("onboarding.md:1", skiff, "Welcome")]
    kept = Tuning(answer=AnswerTuning(least_chance=0.4, nearby_sentences=3))
    answer = extract_answer(Query("What is a skiff in our projects?"), (), passages, minilm, Plan(tuning=kept))
    assert [sentence.text for sentence in answer.sentences] == ["A skiff is what we call a small customer project."]
    assert "Summary." not in (nearby := [sentence.text for sentence in answer.nearby])
    assert nearby, "what comes near is kept"
    assert answer.used == ("onboarding.md:1",)
    assert not extract_answer(Query("What is a skiff?"), (), passages, minilm, Plan()).nearby


@pytest.mark.parametrize(("scores", "kept"), [((1.0, 0.3, 0.2), 0), ((1.0, 0.6, 0.2), 1), ((0.2, 0.1, 0.0), 2)])
def test_a_sentence_joins_that_may_well_answer_in_the_place_of_the_best(scores: Sequence[float], kept: int) -> None:
    passage = Passage("a:1", "The gate is low. The shed is old. The barn is tall.")
    quotes = find_quotes([passage], AnswerTuning())
    ranked = [replace(quote, score=score) for quote, score in zip(quotes, scores, strict=True)]
    assert len(keep_likely(ranked, weigh_chances(ranked, AnswerTuning()), AnswerTuning())) == kept
    assert not keep_likely(ranked, [0.9, 0.05, 0.05], AnswerTuning(least_chance=0.01, sure_chance=0.85))
    by_words = extract_answer(Query("How tall is the barn?"), (), [passage], None, Plan(tuning=BRIEF))
    assert (by_words.text, by_words.chance) == ("The barn is tall.", None)


def weigh(embedder: Embedder, query: Query, tuning: AnswerTuning, **texts: str) -> dict[str, float]:
    """What a tuning adds to the score of each sentence, of texts by their language."""
    quotes = find_quotes([Passage(f"{name}:1", text, language=name) for name, text in texts.items()], tuning)
    ranked = (rank_quotes(quotes, query, (), embedder, Tuning(answer=each))[0] for each in (AnswerTuning(), tuning))
    bare, weighed = ({quote.lead: quote.score for quote in found} for found in ranked)
    return {lead: round(weighed[lead] - score, 6) for lead, score in bare.items()}


@needs_embedder
def test_a_question_in_another_language_prefers_sentences_in_it(minilm: Embedder) -> None:
    lighthouse, bill = "El faro de la trattoria se apagó una noche de niebla.", "Il totale della trattoria: 64,50 euro."
    italian, english = "Quanto abbiamo speso alla trattoria del faro?", "How much did we spend at the trattoria?"
    tuning = AnswerTuning(foreign_penalty=0.2)
    assert weigh(minilm, Query(italian), tuning, es=lighthouse, it=bill) == {lighthouse: -0.2, bill: 0}
    assert not any(weigh(minilm, Query(english), tuning, es=lighthouse, it=bill).values())


def test_what_nobody_could_read_is_told_by_its_meaning() -> None:
    (quote,) = find_quotes([Passage("a:1", "Die Kaution beträgt 900 Euro.")], AnswerTuning())
    unread, limit = [replace(quote, reading=Reading(UNREAD))], BRIEF.answer.answerable_cosine
    near, far = (score_surety(cosine, unread, Query("Kaution?"), "", BRIEF.answer) for cosine in (0.6, 0.4))
    assert near > limit > far


CASES = read_cases("two_values")


@needs_embedder
@pytest.mark.parametrize(("asked", "said"), [*CASES["computed"].items(), *((one, "") for one in CASES["not_computed"])])
def test_two_values_are_read_computed_and_cited(minilm: Embedder, asked: str, said: str) -> None:
    passages = [Passage(id, text) for id, text in CASES["passages"].items()]
    answer = extract_answer(Query(asked, today=CASES["today"]), (), passages, minilm, Plan(tuning=BRIEF))
    assert answer.used
    assert (answer.direct == said) if said else not any(sign in answer.direct for sign in ("−", " ago", "In "))
    assert "−" not in extract_answer(Query(asked), (), passages, minilm, Plan(tuning=BRIEF)).direct, "not in a run"
