"""The measures of answers' form: what dangles and what is glued, in tables, and in a run and its trace."""

from benchmarks.answer_form import (
    Answer,
    Form,
    cut_sentences,
    dangles,
    is_glued,
    measure_form,
    points_back,
)

SOURCE = "The soup is hot. Serving [2] It is red. It was cheap. Beans are green."


DANGLING = (
    "He or she will be able to go.; However, soup is hot.; But if you are ill, stay.; For example, beans are green.; "
    "**This makes it tolerable.**; In that case, call Rosa.; Dabei ist Vorsicht geboten."
)
FREE = (
    "It is important to eat.; In addition to salt, add pepper.; Heron gets released in May.; Thesis work takes a year."
)
GLUED = (
    "Side Effects The most common side effects are nausea.; Home » Nutrition » Protein Beans have protein.; "
    "Steaming Steaming is healthy.; Nutritional Yeast Nutritional yeast is vegan.; By MacRumors Staff on April 15, "
    "2020 The phone is thin.; [ 6 ] It bore only a slight resemblance.; 5. Funding There never seems to be enough.; "
    "Updated 3 March 2021 Eat beans.; Watch on Today we make soup."
)
WHOLE = (
    "The National Institute for Health recommends a low dose.; Home is where the heart is.; By July 2020 the price had "
    "doubled.; BMW and Mercedes-Benz build cars.; It takes fifty minutes."
)


def test_what_points_back_and_what_is_glued() -> None:
    for holds, yes, no in ((points_back, DANGLING, FREE), (is_glued, GLUED, WHOLE)):
        assert [text for text in yes.split("; ") if not holds(text)] == []
        assert [text for text in no.split("; ") if holds(text)] == []


def test_what_stands_beside_what_it_points_to_does_not_dangle() -> None:
    hot, red, cheap, green = "The soup is hot.", "It is red.", "It was cheap.", "Beans are green."
    for sentences, places in (((red,), [0]), ((hot, red, cheap), []), ((hot, cheap), [1]), ((green, red), [1])):
        answer = Answer(sentences, (SOURCE,))
        assert [place for place in range(len(sentences)) if dangles(answer, place)] == places
    assert dangles(Answer((hot, red), ()), 1)  # without its source


def test_the_measures_by_hand() -> None:
    answers = [
        Answer(("It is red.", "Beans are green."), (SOURCE,)),
        Answer(("Side Effects The most common one is heat.", "It was cheap."), (SOURCE,)),
        Answer((), ()),
    ]
    assert measure_form(answers) == Form(2, 4, 0.5, 0.5, 0.5, 0.25)
    text = "It was made by Dr. Smith in No. 5. The soup is hot. “Beans” are green."
    assert cut_sentences(text) == ["It was made by Dr. Smith in No. 5. The soup is hot.", "“Beans” are green."]
