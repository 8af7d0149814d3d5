"""What a person must avoid is not recommended, and warnings that bear on them come first."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.chat.session import PLAN, Assistant, Session, open_assistant, open_collection
from agent.chat.store import Store
from agent.models.registry import open_model
from agent.models.scripted import Script, ScriptedModel
from agent.turn.attribution import is_supported
from agent.turn.safety.needs import classify_request, content_stems, find_needs, find_stems, split_told
from agent.turn.safety.personal_answer import answer_for_person
from agent.turn.safety.review import Review, find_warned, is_of, mentions_any, review_passages
from agent.turn.writing.checked_answer import Writer
from indexes.documents.document_index import open_documents
from indexes.index_vectors import cache_vectors
from indexes.ranking.vectors import Embedder
from indexes.text.response_length import MAX_TOKENS, response_length
from schemas.records import Call, Passage, Plan, Query, Response, ScoredStatement, Statement
from tests.conftest import examples, needs_embedder, read_cases

PEANUTS = "I am allergic to peanuts."


def find_avoided(text: str) -> list[frozenset[str]]:
    """All that a statement speaks against, whether it must be heeded or may."""
    needs = find_needs((), [ScoredStatement(Statement("1", text), 1.0)], ())
    return [thing for avoidance in needs for thing in avoidance.things]


PHRASES = ("You told me: ", "Everything I found conflicts with what you told me ", "I found no")


@pytest.mark.parametrize(
    ("statement", "avoided", "not_avoided"),
    read_cases("avoided")["cases"],
)
def test_what_a_statement_speaks_against(statement: str, avoided: str, not_avoided: str) -> None:
    things = find_avoided(statement)
    for name in filter(None, avoided.split("; ")):
        assert content_stems(name) in things, name
    for name in filter(None, not_avoided.split("; ")):
        assert content_stems(name) not in things, name


@pytest.mark.parametrize(
    ("sentence", "there", "absent"),
    [
        ("Stir in the peanut butter.", "peanut", "butter"),
        ("Not suitable for people who are allergic to peanuts.", "peanuts", ""),
        ("Suitable for children but dangerous for people with a peanut allergy.", "peanut", ""),
        ("Contains no peanuts.", "", "peanuts"),
        ("There is no celery, peanuts are added.", "peanuts", "celery"),
        ("No bake peanut bars.", "peanut", ""),
        ("Never skip the peanuts, and add only roasted nuts.", "peanuts; nuts", ""),
        ("A cup of dairy-free milk and gluten-free bread.", "bread", "milk; dairy; gluten"),
        ("Gluten-free peanut bars and fat-free milk.", "peanut; milk", "gluten"),
        ("Rice noodles and buckwheat flour.", "rice", "noodles; flour"),
        ("We flew to Turkey.", "", "turkey"),
    ],
)
def test_what_a_sentence_says_is_there(sentence: str, there: str, absent: str) -> None:
    stems = find_stems(sentence)
    assert all(content_stems(name) <= stems for name in filter(None, there.split("; ")))
    assert not any(content_stems(name) <= stems for name in filter(None, absent.split("; ")))


@pytest.mark.parametrize(
    ("statement", "sentence", "bears"),
    [
        (PEANUTS, "Warning: dangerous for people who are allergic to peanuts.", True),
        (PEANUTS, "May contain traces of groundnut.", True),
        (PEANUTS, "Contains no peanuts.", False),
        (PEANUTS, "Consult a doctor before you take this if you have allergies.", True),
        (PEANUTS, "Does it contain peanuts?", False),
        ("I'm vegetarian.", "Many restaurants serve food that contains meat.", False),
        ("I have coeliac disease.", "It remains unsafe for people with coeliac disease.", True),
        ("I have coeliac disease.", "Buckwheat contains no gluten, despite the wheat in its name.", False),
        ("I don't have asthma.", "Not suitable for people with asthma.", False),
        ("I have a cat named Ginger.", "Basil is non-toxic to cats.", False),
        ("I live with two dogs.", "Dogs like long walks.", False),
        ("I take the bus.", "Do not eat grapefruit if you take simvastatin.", False),
    ],
)
def test_which_warnings_bear_on_a_person(statement: str, sentence: str, bears: bool) -> None:
    needs = find_needs([Statement("1", statement)], (), ())
    assert bool(find_warned(sentence, needs)) == bears


@pytest.mark.parametrize(
    ("utterances", "kind"),
    [
        (["What could I cook tonight?", "And tomorrow?"], "recommendation"),
        (["I'm allergic to nuts, what can I bake?"], "recommendation"),
        (["Dinner ideas please"], "recommendation"),
        (["How long does the satay keep?", "And frozen?"], "fact"),
        (["What is in the satay?"], "fact"),
        (["Which foods should I avoid?"], "fact"),
        (["Can you tell me more about the Greek one?"], "fact"),
    ],
)
def test_what_is_asked_for(utterances: list[str], kind: str) -> None:
    assert classify_request(utterances) == kind


@pytest.mark.parametrize(
    ("utterance", "told"),
    [
        ("I'm allergic to peanuts, what could I cook?", ["I'm allergic to peanuts."]),
        ("As I'm allergic to nuts, what can I bake?", ["I'm allergic to nuts."]),
        ("What can I bake, as I’m allergic to nuts and eggs?", ["I'm allergic to nuts and eggs."]),
        ("Recommend a cake, I'm vegan.", ["I'm vegan."]),
        ("My son can't eat eggs so what can I bake for him?", ["My son can't eat eggs."]),
        ("I want a recipe with peanuts.", []),
    ],
)
def test_what_an_utterance_tells(utterance: str, told: list[str]) -> None:
    assert split_told(utterance)[0] == told


SATAY = Passage("recipes/satay.md:1-4", "A quick dinner of noodles. Stir in the peanut butter.", "Satay noodles")
WARNED = Passage(
    "recipes/satay.md:9-12", "Warning: dangerous for people who are allergic to peanuts.", "Satay noodles: Notes"
)
SAUCE = Passage("recipes/satay.md:5-8", "Warm the sauce up slowly and serve it.", "Satay noodles: Method")
SOUP = Passage("recipes/soup.md:1-5", "A quick dinner of tomatoes. Serve it with rice.", "Tomato soup")
STEW = Passage("recipes/stew.md:1-5", "A quick dinner of beef. Simmer it for two hours.", "Stew")
BOOK_SATAY = Passage("book.md:1-9", "A quick dinner. Stir in the peanut butter.", "Recipes: Satay")
BOOK_SOUP = Passage("book.md:10-19", "A quick dinner of tomatoes.", "Recipes: Soup")
PAGE = [Passage(f"clueweb22-en0000-00-00001:{n}", text) for n, text in enumerate(("Grind peanuts.", "Bake the dish."))]
SWAPPED = Passage("goulash.md:1-5", "Brown the beef. Vegetarians take beans instead of meat.", "Goulash")
COOK = "What could I cook tonight?"
MENU = Passage("menu.md:1-9", "Our menu.\nPad Thai: Noodles. Contains peanuts.\nChilli: Beans with rice.", "Menu")
MENU_LEFT = replace(MENU, text="Our menu.\nChilli: Beans with rice.")
ALL_TRACES = replace(MENU, text=f"{MENU.text}\nAll may contain traces of peanuts.")
PARTS = Passage("supper.md:1-9", "You need: Two spoons of peanuts.\nBaking it: Grind all and bake it.", "Supper")
LILIES = Passage("lilies.md:1-3", "Lilies smell sweet. Lilies are poisonous to cats.", "Lilies")


@pytest.mark.parametrize(
    ("passages", "statements", "utterance", "kept", "left_out", "warnings"),
    [
        ([SATAY, SOUP], [PEANUTS], COOK, [SOUP], ["Satay noodles"], 0),
        ([SATAY, SAUCE, WARNED, SOUP], [PEANUTS], COOK, [SOUP], ["Satay noodles"], 1),
        ([SATAY, WARNED], [PEANUTS], COOK, [], ["Satay noodles"], 1),
        ([SATAY, WARNED, SOUP], [], COOK, [SATAY, WARNED, SOUP], [], 0),
        ([SATAY, WARNED, SOUP], ["I love peanuts."], COOK, [SATAY, WARNED, SOUP], [], 0),
        ([SATAY, WARNED], [PEANUTS], "Does the satay contain peanuts?", [SATAY, WARNED], [], 1),
        ([SATAY, SOUP], [PEANUTS], "Which peanut dish could I cook?", [SATAY, SOUP], [], 0),
        ([SATAY, SOUP], [PEANUTS], "What could I cook instead of peanuts?", [SOUP], ["Satay noodles"], 0),
        ([SATAY, SOUP], [], f"{PEANUTS} {COOK}", [SOUP], ["Satay noodles"], 0),
        ([SATAY, SOUP], [PEANUTS], "The fridge is empty and my family is coming.", [SOUP], ["Satay noodles"], 0),
        ([STEW, SATAY, SOUP], ["I'm vegetarian.", PEANUTS], COOK, [SOUP], ["Stew", "Satay noodles"], 0),
        ([BOOK_SATAY, BOOK_SOUP], [PEANUTS], COOK, [BOOK_SOUP], ["Satay"], 0),
        ([*PAGE, SOUP], [PEANUTS], COOK, [SOUP], ["clueweb22-en0000-00-00001"], 0),
        ([SWAPPED, SOUP], ["I'm vegetarian."], COOK, [SOUP], ["Goulash"], 0),
        ([SATAY, SOUP], ["I hate noodles."], COOK, [SATAY, SOUP], [], 0),
        ([MENU], [PEANUTS], COOK, [MENU_LEFT], ["Pad Thai"], 1),
        ([ALL_TRACES], [PEANUTS], COOK, [], ["Menu"], 2),
        ([PARTS], [PEANUTS], COOK, [], ["Supper"], 0),
        ([LILIES, SOUP], ["I have a cat."], "How tall are lilies?", [LILIES, SOUP], [], 1),
    ],
)  # fmt: skip
def test_what_is_left_out(
    passages: list[Passage],
    statements: list[str],
    utterance: str,
    kept: list[Passage],
    left_out: list[str],
    warnings: int,
) -> None:
    """Whether the statement was selected has no say: nothing is selected here."""
    ptkb = [Statement(str(n), text) for n, text in enumerate(statements)]
    review = review_passages(passages, 5, find_needs(ptkb, (), [utterance]), [utterance])
    assert list(review.kept) == kept
    assert list(dict.fromkeys(dish.title for dish in review.left_out)) == left_out
    assert len(review.warnings) == warnings


def test_a_dislike_rules_out_passages_only_where_it_was_selected_and_others_are_left() -> None:
    disliked = ScoredStatement(Statement("1", "I hate noodles."), 0.9)
    needs = find_needs([disliked.statement], [disliked], [COOK])
    assert review_passages([SATAY, SOUP], 5, needs, [COOK]).kept == (SOUP,)
    assert review_passages([SATAY], 5, needs, [COOK]).kept == (SATAY,)


def test_what_is_read_further_fills_the_gap_and_tells_of_the_same_dish() -> None:
    needs = find_needs([Statement("1", PEANUTS)], (), [COOK])
    review = review_passages([SAUCE, STEW, WARNED, SOUP], 2, needs, [COOK])
    assert review.kept == (STEW, SOUP)
    assert [dish.title for dish in review.left_out] == ["Satay noodles"]


@contextmanager
def no_progress(_stage: str, _total: int) -> Iterator[Callable[[int], None]]:
    """Shows nothing."""
    yield lambda _done: None


Open = Callable[[str], Assistant]
STORIES = read_cases("safety_stories")


@pytest.fixture(scope="module")
def open_folder(tmp_path_factory: pytest.TempPathFactory, minilm: Embedder) -> Open:
    """An assistant over one of the folders, opened once."""

    @cache
    def open_once(name: str) -> Assistant:
        folder = tmp_path_factory.mktemp(name)
        (folder / "documents").mkdir()
        for file, text in STORIES["folders"][name].items():
            (folder / "documents" / file).write_text(text)
        index = open_documents(folder / "documents", folder / "cache", minilm, no_progress).index
        return open_assistant(open_collection("documents", index, cache_vectors(minilm)), "none")

    return open_once


@needs_embedder
@pytest.mark.parametrize("story", STORIES["stories"], ids=[story["label"] for story in STORIES["stories"]])
def test_what_a_person_must_avoid_is_never_advised(story: dict[str, Any], open_folder: Open) -> None:
    """Each story says what of the last answer is said ("a|b": either), what never is, and what is cited."""
    store = Store(None)
    for statement in story["told"]:
        store.add_statement(statement)
    session = Session(open_folder(story["folder"]), store)
    response = [session.ask(utterance) for utterance in story["talk"]][-1].response
    shown = " ".join([response.direct, response.text, *(sentence.text for sentence in response.nearby)]).lower()
    assert all(any(either in shown for either in part.lower().split("|")) for part in story["says"]), shown
    assert not [part for part in story["never"] if part.lower() in shown], shown
    assert set(story["cites"]) <= {id.partition(":")[0] for id in response.used}, shown


def answer(passages: list[Passage], statements: list[str], utterance: str, plan: Plan) -> tuple[Review, Response]:
    """What a person with these statements is answered from these passages, without any model."""
    ptkb = [Statement(str(n), text) for n, text in enumerate(statements)]
    review = review_passages(passages, 5, find_needs(ptkb, (), [utterance]), [utterance])
    made = answer_for_person(Query(utterance), (), review, Writer(open_model("none")), None, plan)
    return review, made.responses[0]


def test_a_run_says_nothing_without_a_passage_save_that_all_conflicts() -> None:
    _, response = answer([SATAY], [PEANUTS], "What quick dinner could I cook?", Plan())
    assert [sentence.text for sentence in response.sentences] == [  # what conflicts, and that it does
        "Everything I found conflicts with what you told me (“I am allergic to peanuts”): Satay noodles (peanut).",
        "Stir in the peanut butter.",
    ]


FOODS = st.sampled_from(["peanuts", "walnuts", "cashews", "beans", "tomatoes", "milk", "beef", "rice"])
SENTENCES = st.one_of(
    st.builds("Warning: dangerous for people who are allergic to {}.".format, FOODS),
    st.builds("A quick dinner of {} is ready to cook in twenty minutes.".format, FOODS),
    st.builds("Contains {}.".format, FOODS),
    st.builds("Without {}, it is a fine dinner for two.".format, FOODS),
    st.just("You can cook it tonight and serve it warm with bread."),
    st.builds("Cook the dinner {}.".format, st.integers(1, 80).map(lambda n: "slowly " * n + "tonight")),
)
TITLES = st.sampled_from(["Stew", "Stew: Method", "Recipes: Soup", "Recipes: Pie", ""])
PASSAGES = st.lists(st.tuples(st.sampled_from("abc"), TITLES, st.lists(SENTENCES, min_size=1, max_size=12)), max_size=5)
STATEMENTS = st.lists(st.sampled_from([PEANUTS, "I'm allergic to nuts.", "I am vegan.", "I like rice."]), max_size=2)


OTHER_WARNING = [
    ("a", "Stew", ["Warning: dangerous for people who are allergic to walnuts."]),
    ("a", "Recipes: Soup", ["A quick dinner of peanuts is ready to cook in twenty minutes."]),
]

SAME_WARNING = [
    ("c", "Stew", ["A quick dinner of peanuts is ready to cook in twenty minutes."]),
    ("a", "Stew", ["You can cook it tonight and serve it warm with bread."]),
    ("b", "Stew", ["Warning: dangerous for people who are allergic to peanuts."]),
    ("a", "Stew", ["Warning: dangerous for people who are allergic to peanuts."]),
]


@examples(150)
@given(drawn=PASSAGES, statements=STATEMENTS, in_chat=st.booleans())
@example(drawn=OTHER_WARNING, statements=[PEANUTS], in_chat=False)
@example(drawn=SAME_WARNING, statements=[PEANUTS], in_chat=False)
def test_a_warning_is_never_dropped_and_nothing_left_out_is_recommended(
    drawn: list[tuple[str, str, list[str]]], statements: list[str], in_chat: bool
) -> None:
    passages = [Passage(f"{name}.md:{n}", " ".join(texts), title) for n, (name, title, texts) in enumerate(drawn)]
    review, response = answer(passages, statements, "What dinner could I cook tonight?", PLAN if in_chat else Plan())
    texts = {sentence.text for sentence in response.sentences}
    warnings = [warning.text for warning, _ in review.warnings]
    cited = [review.dishes[id] for id in response.used]
    dropped = [
        warning
        for warning, _ in review.warnings
        if warning.text not in texts and any(is_of(review.dishes[warning.passage_ids[0]], dish) for dish in cited)
    ]
    if dropped:  # only for another warning, never for a sentence of the answer
        assert all(sentence.text in warnings for sentence in response.sentences)
        assert sum(map(response_length, warnings)) > MAX_TOKENS // 2
    assert review.kept or not passages or texts
    shown_warnings = [sentence.text in warnings for sentence in response.sentences if sentence.passage_ids]
    assert shown_warnings == sorted(shown_warnings, reverse=True)  # they come first
    avoidances = find_needs([Statement("", text) for text in statements], (), ())
    advised = [
        sentence.text for sentence in response.sentences if sentence.passage_ids and sentence.text not in warnings
    ]
    if in_chat:  # a run has to cite something
        dangerous = [each for each in avoidances if each.severity == "health"]
        assert not [text for text in advised for each in dangerous if mentions_any(text, each.things)]
    kept = {passage.id for passage in review.kept}
    held = {passage.id: passage.text for passage in passages}
    for sentence in response.sentences:
        if not sentence.passage_ids:
            assert sentence.text.startswith(PHRASES)
            continue
        assert all(is_supported(sentence.text, held[id]) for id in sentence.passage_ids)
        reasons = {dish.reason.text for dish in review.left_out}
        assert sentence.text in warnings or set(sentence.passage_ids) <= kept or (sentence.text in reasons and not kept)
    assert response_length(response.text) <= MAX_TOKENS


@pytest.mark.parametrize("asked", ["What dinner could I cook?", "How do the noodles taste?"])
def test_a_model_that_writes_has_no_say_in_it(asked: str) -> None:
    """It is not shown what is left out; and a warning of what it cites stands before its words."""
    calls: list[Call] = []
    llm = ScriptedModel(
        Script(ask={"write": ["A quick dinner of noodles. [1] Serve it with rice. [1]"]}),
        calls.append,
        writes_answers=True,
    )
    needs = find_needs([Statement("1", PEANUTS)], (), [asked])
    review = review_passages([SATAY, WARNED, SOUP], 5, needs, [asked])
    made = answer_for_person(Query(asked), (), review, Writer(llm), None, Plan())
    [response] = made.responses
    assert response.sentences[0].text == WARNED.text
    is_fact = asked.startswith("How")
    assert ("noodles" in response.text) == is_fact
    assert ("Stir in the peanut butter" in calls[0].prompt) == is_fact
    assert [chosen.statement.text for chosen in made.selected_statements] == [PEANUTS]


def test_a_statement_of_any_length_is_read_to_its_end_in_time() -> None:
    """A clause without an end; read at once, its patterns take the square of its length."""
    long = "in the park with the old dog " * 150 + "I am allergic to peanuts"
    assert ("peanut",) in [tuple(sorted(thing)) for thing in find_avoided(long)]
