"""The measures of answers' form: what dangles and what is glued, in tables, and in a run and its trace."""

from benchmarks.answer_form import Answer, Form, cut_sentences, dangles, measure_form

SOURCE = "The soup is hot. Serving [2] It is red. It was cheap. Beans are green."


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
