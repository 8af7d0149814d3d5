"""Questions with marked answers, as passages to read: what is held out is held out by document.

Sources and licences are in the card of what was learned (`agent/models/learned/reader.md`).
"""

import json
import random
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

from agent.chat.session import open_collection
from agent.turn.reading import compose_follow_up, join_units
from indexes.documents.document_index import open_documents
from indexes.documents.reading import parse_document
from indexes.documents.watching import CurrentCollection
from indexes.ranking.vectors import Embed, Embedder, Vectors
from indexes.text.analysis import load_stop_words

OWN = Path(__file__).parent / "own_documents.jsonl"
Span = tuple[int, int]  # characters of a text
HELD_OUT = 0.1  # share of the documents of each source
HELD_OUT_MORE = {"selqa": 0.5, "qed": 0.5, "clapnq": 0.5, "own": 0.16}  # of what is most like what people ask
LEAST_WORDS, MOST_WORDS = 30, 150  # of a passage
UNANSWERED = 0.8  # as many examples again are without an answer
RIVALS = 12  # passages that the one without an answer is chosen from: the one most like the question
TOGETHER = 0.5  # of the passages without an answer are read beside the one that has it
OWN_HAVING = 2  # passages at most that have the answer
OWN_RIVALS = 3  # passages of a folder, the most like the question, that are read beside those that have its answer
FOLLOWING = 0.3  # of the questions over own documents follow another one
OWN_WITHOUT = 0.25  # of the questions over own documents are asked of the rivals alone
TITLED = 0.5  # of the passages begin with the title of their document
QUESTIONS_EACH = 5  # of a sentence in QAMR, which has some 35
LEAST_QUESTION = 4  # words; shorter ones of QAMR are asked of their sentence alone
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+")
_WORD = re.compile(r"\w{3,}")


@dataclass(frozen=True, slots=True)
class ReadingExample:
    """A question and a passage."""

    source: str
    document: str
    question: str
    text: str
    answers: tuple[Span, ...] = ()  # none: the passage has no answer
    exact: bool = True  # False: these are the sentences that have the answer, not the answer itself


Together = tuple[ReadingExample, ...]  # of one question: the passages that are held against each other


@dataclass(frozen=True, slots=True)
class Marked:
    """A question over a whole document, before a passage is cut from it."""

    source: str
    document: str
    title: str
    question: str
    text: str
    answers: tuple[Span, ...]
    others: tuple[str, ...] = ()  # texts of the same document without the answer
    exact: bool = True


@dataclass(frozen=True, slots=True)
class OwnFolder:
    """Documents that a person keeps together, as the reader gets them, with questions over each."""

    document: str  # the folder's name; of a document that lies alone, its title
    texts: tuple[tuple[str, ...], ...]  # the passages of each document
    questions: tuple[tuple[dict[str, Any], ...], ...]
    source: str = "own"


def read_examples(
    data: Path, order: random.Random, embed: Embed, *, held_out: bool, any_language: bool = False
) -> list[Together]:
    """All examples that are learned from, or those that are held out, answerable and not."""
    examples: list[Together] = []
    for read in (read_qamr, read_fairy_tales, read_marked_texts, read_selqa, read_qed):
        for marked in read(data / "reading", order):
            if is_held_out(marked) == held_out:
                examples += _cut(marked, order)
    for marked in read_clapnq(data / "clapnq"):
        if is_held_out(marked) == held_out:
            examples += _cut(marked, order) if marked.answers else [(_cut_empty(marked, order),)]
    folders = [folder for folder in read_own_folders(any_language) if is_held_out(folder) == held_out]
    return [*examples, *chain.from_iterable(_ask(folder, order, embed) for folder in folders)]


def is_held_out(marked: "Marked | OwnFolder") -> bool:
    """Whether nothing is learned from a document or a folder, told by its name."""
    number = int(sha256(marked.document.encode()).hexdigest()[:8], 16) / 0xFFFFFFFF
    return number < HELD_OUT_MORE.get(marked.source, HELD_OUT)


def read_qamr(folder: Path, order: random.Random) -> Iterator[Marked]:
    """QAMR asks of single sentences: a passage is one among others of its article, or of any."""
    sentences = {each["id"]: each for each in _read_lines(folder / "qamr_sentences.jsonl")}
    by_article, by_sentence = defaultdict(list), defaultdict(list)
    for each in sentences.values():
        by_article[each["article"]].append(each["text"])
    for asked in _read_lines(folder / "qamr_questions.jsonl"):
        by_sentence[asked["sentence"]].append(asked)
    everything = [each["text"] for each in sentences.values()]
    for id, asked_all in by_sentence.items():
        own = sentences[id]["text"]
        for asked in order.sample(asked_all, min(QUESTIONS_EACH, len(asked_all))):
            count = order.randint(1, 5) if len(asked["question"].split()) >= LEAST_QUESTION else 0
            near = [text for text in by_article[sentences[id]["article"]] if text != own]
            rest = [*order.sample(near, min(len(near), count)), *order.sample(everything, count)][:count]
            place = order.randint(0, len(rest))
            before = "".join(f"{text} " for text in rest[:place])
            text = " ".join([*rest[:place], own, *rest[place:]])
            answer = (len(before) + asked["start"], len(before) + asked["end"])
            yield Marked("qamr", sentences[id]["article"], "", asked["question"], text, (answer,), tuple(near))


def read_fairy_tales(folder: Path, _order: random.Random) -> Iterator[Marked]:
    """FairytaleQA: questions whose answer stands in a section in words."""
    stories = {each["story"]: each["sections"] for each in _read_lines(folder / "fairytale_stories.jsonl")}
    for asked in _read_lines(folder / "fairytale_questions.jsonl"):
        sections = stories[asked["story"]]
        text = _fold(" ".join(sections[number] for number in asked["sections"]))
        answers = tuple(span for answer in asked["answers"] if (span := _find(answer, text)))
        others = tuple(_fold(each) for number, each in enumerate(sections) if number not in asked["sections"])
        if asked["explicit"] and answers:
            yield Marked("fairytale", asked["story"], asked["story"], asked["question"], text, answers, others)


def read_marked_texts(folder: Path, _order: random.Random) -> Iterator[Marked]:
    """PolicyQA and COVID-QA, of which one has short texts of a site and the other whole papers."""
    for source in ("policyqa", "covidqa"):
        texts = _read_lines(folder / f"{source}.jsonl")
        by_title = defaultdict(list)
        for each in texts:
            by_title[each["title"]].append(_fold(each["text"]))
        for number, each in enumerate(texts):
            text, document = _fold(each["text"]), each["title"] or f"{source}{number}"
            others = tuple(other for other in by_title[each["title"]] if other != text) if each["title"] else ()
            for asked in each["questions"]:
                answers = tuple(_fold_span(each["text"], answer) for answer in asked["answers"])
                yield Marked(source, document, each["title"], asked["question"], text, answers, others)


def read_selqa(folder: Path, _order: random.Random) -> Iterator[Marked]:
    """SelQA marks sentences, not words."""
    for asked in _read_lines(folder / "selqa.jsonl"):
        sentences = [_fold(each) for each in asked["sentences"]]
        starts = [sum(len(each) + 1 for each in sentences[:number]) for number in range(len(sentences))]
        answers = tuple((starts[number], starts[number] + len(sentences[number])) for number in asked["selected"])
        others = (" ".join(each for number, each in enumerate(sentences) if number not in asked["selected"]),)
        title, text = f"{asked['article']}: {asked['section']}", " ".join(sentences)
        if answers:
            yield Marked("selqa", asked["article"], title, asked["question"], text, answers, others, exact=False)


def read_qed(folder: Path, _order: random.Random) -> Iterator[Marked]:
    """QED: what people asked a search engine."""
    for asked in _read_lines(folder / "qed.jsonl"):
        answers = tuple(_fold_span(asked["text"], part) for parts in asked["answers"] for part in parts)
        if answers:
            yield Marked("qed", asked["title"], asked["title"], asked["question"], _fold(asked["text"]), answers)


def read_clapnq(folder: Path) -> Iterator[Marked]:
    """ClapNQ: what people asked a search engine, half of it over passages that do not answer it."""
    for asked in _read_lines(folder / "questions.jsonl"):
        sentences = [_fold(each) for each in asked["sentences"]]
        starts = [sum(len(each) + 1 for each in sentences[:number]) for number in range(len(sentences))]
        chosen = {_fold(each) for selected in asked["selected"] for each in selected}
        answers = tuple(
            (start, start + len(each)) for start, each in zip(starts, sentences, strict=True) if each in chosen
        )
        if bool(answers) == asked["answerable"]:
            text = " ".join(sentences)
            yield Marked("clapnq", asked["id"], asked["title"], asked["question"], text, answers, exact=False)


@contextmanager
def open_folder(documents: Sequence[dict[str, Any]], embedder: Embedder | None) -> Iterator[CurrentCollection]:
    """Some such documents as files of a folder, ready to be asked."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "documents"
        folder.mkdir()
        for each in documents:
            (folder / f"{each['title'].replace('/', ' ')[:80]}.md").write_text(each["text"], encoding="utf-8")
        index = open_documents(folder, Path(home), embedder, lambda *_: nullcontext(lambda _done: None)).index
        yield open_collection(str(folder), index, embedder)


def says_any(text: str, answers: Sequence[str]) -> bool:
    """Whether a text has one of the marked answers."""
    plain = _fold(text).casefold()
    return any(_fold(answer).casefold().rstrip(".;, ") in plain for answer in answers)


def read_folders(any_language: bool = False) -> dict[str, list[dict[str, Any]]]:
    """Documents as people keep them, made up for this, by their folder; documents alone are folders.

    Those of several languages say which; without `any_language` they are left out.
    """
    folders = defaultdict[str, list[dict[str, Any]]](list)
    for each in (each for each in _read_lines(OWN) if any_language or "language" not in each):
        folders[each.get("folder", each["title"])].append(each)
    return folders


def read_own_folders(any_language: bool) -> Iterator[OwnFolder]:
    """Such documents, cut into passages as the program cuts them."""
    for name, documents in read_folders(any_language).items():
        texts = tuple(_cut_as_program(each) for each in documents)
        yield OwnFolder(name, texts, tuple(tuple(each["questions"]) for each in documents))


def _cut_as_program(document: dict[str, Any]) -> tuple[str, ...]:
    name = f"{document['title'].replace('/', ' ')}.md"
    parsed = parse_document(Path(name), name, document["text"].encode())
    return tuple(join_units(passage)[0] for passage in parsed.passages)


def _ask(folder: OwnFolder, order: random.Random, embed: Embed) -> Iterator[Together]:
    """Each question with the passages that have its answer, and those most like it that have none."""
    texts = list(chain.from_iterable(folder.texts))
    meanings = embed(texts)
    for own, questions in zip(folder.texts, folder.questions, strict=True):
        for asked in questions:
            example = ReadingExample("own", folder.document, _compose_question(asked, questions, order), "")
            rivals = [replace(example, text=text) for text in _find_rivals(asked, texts, embed, meanings)]
            found = [(text, _find_all_own(asked, text)) for text in own]
            having = [replace(example, text=text, answers=answers) for text, answers in found if answers]
            yield (*having[:OWN_HAVING], *rivals)
            if having and order.random() < OWN_WITHOUT:
                yield tuple(rivals)


def _compose_question(asked: dict[str, Any], others: Sequence[dict[str, Any]], order: random.Random) -> str:
    """A follow-up after the question that it follows; some of the others made to follow one of their document."""
    question = asked["question"]
    if asked.get("after"):
        return order.choice((compose_follow_up(asked["after"][-1], question), asked["standalone"]))
    if order.random() > FOLLOWING or "language" in asked:  # "it" is an English word
        return str(question)
    before = order.choice(others)["question"]
    return compose_follow_up(before, point_back(question, before, order))


def point_back(question: str, before: str, order: random.Random) -> str:
    """A question with "it" for the longest phrase that it shares with the one before, where there is such."""
    words, said = question.split(), f" {_plain(before)} "
    runs = [(end - start, start) for start in range(len(words)) for end in range(start + 1, len(words) + 1)]
    for size, start in sorted(runs, reverse=True):
        phrase = _plain(" ".join(words[start : start + size]))
        if f" {phrase} " in said and not set(phrase.split()) <= load_stop_words():
            rest = [*words[:start], order.choice(("it", "it", "that", "they", "")), *words[start + size :]]
            return " ".join(word for word in rest if word)
    return question


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[\w'-]+", text.lower()))


def _find_rivals(asked: dict[str, Any], texts: Sequence[str], embed: Embed, meanings: Vectors) -> list[str]:
    """The passages most like a question, by meaning and by words, that do not have its answer."""
    question = asked.get("standalone", asked["question"])
    wanted = _words(question)
    likeness = (meanings @ embed([question])[0]).tolist()
    scores = [
        near + len(wanted & _words(text)) / max(1, len(wanted)) for near, text in zip(likeness, texts, strict=True)
    ]
    ranked = (texts[n] for n in sorted(range(len(texts)), key=lambda n: -scores[n]))
    return [text for text in ranked if not any(_fold(answer) in text for answer in asked["answers"])][:OWN_RIVALS]


def _find_all_own(asked: dict[str, Any], text: str) -> tuple[Span, ...]:
    return tuple(span for answer in asked["answers"] if (span := _find_own(answer, asked, text)))


def _find_own(answer: str, asked: dict[str, Any], text: str) -> Span | None:
    """An answer where its context stands, if one is given."""
    context = _fold(asked.get("context", ""))
    around = text.find(context)
    start = text.find(_fold(answer), around) if around >= 0 else -1
    return (start, start + len(_fold(answer))) if start >= 0 else None


def split_sentences(text: str) -> list[Span]:
    """Where the sentences of a text stand, the white space after each included."""
    ends = [*(found.end() for found in _SENTENCE_END.finditer(text)), len(text)]
    starts = [0, *ends[:-1]]
    return [(start, end) for start, end in zip(starts, ends, strict=True) if end > start]


def _cut(marked: Marked, order: random.Random) -> Iterator[Together]:
    """A passage around the first answer, and for some questions another one without any."""
    start, end = _choose_window(marked.text, marked.answers[0], order)
    inside = tuple((a - start, b - start) for a, b in marked.answers if start <= a and b <= end)
    example = ReadingExample(
        marked.source, marked.document, marked.question, marked.text[start:end], inside, marked.exact
    )
    answered = _add_title(example, marked.title, order)
    texts = [text for text in marked.others if text] or _rest_of(marked)
    if texts and order.random() < UNANSWERED:
        rivals = [_cut_anywhere(order.choice(texts), order) for _ in range(RIVALS)]
        wanted = _words(marked.question)
        nearest = max(rivals, key=lambda text: len(wanted & _words(text)))
        empty = replace(example, text=nearest, answers=())
        unanswered = _add_title(empty, marked.title, order)
        yield from [(answered, unanswered)] if order.random() < TOGETHER else [(answered,), (unanswered,)]
    else:
        yield (answered,)


def _cut_empty(marked: Marked, order: random.Random) -> ReadingExample:
    """A passage of a text that does not answer."""
    empty = ReadingExample(marked.source, marked.document, marked.question, _cut_anywhere(marked.text, order))
    return _add_title(empty, marked.title, order)


def _rest_of(marked: Marked) -> list[str]:
    """What stands well before and after the answers of a long text."""
    first, last = min(a for a, _ in marked.answers), max(b for _, b in marked.answers)
    parts = (marked.text[: max(0, first - 200)], marked.text[last + 200 :])
    return [part for part in parts if len(part) > 300]


def _choose_window(text: str, answer: Span, order: random.Random) -> Span:
    """Some sentences with an answer in them."""
    sentences, most = split_sentences(text), order.randint(LEAST_WORDS, MOST_WORDS)
    first = max((n for n, (start, _) in enumerate(sentences) if start <= answer[0]), default=0)
    last = max(first, min((n for n, (_, end) in enumerate(sentences) if end >= answer[1]), default=len(sentences) - 1))
    while first > 0 or last < len(sentences) - 1:
        before = first > 0 and (last == len(sentences) - 1 or order.random() < 0.5)
        grown = (first - 1, last) if before else (first, last + 1)
        if len(text[sentences[grown[0]][0] : sentences[grown[1]][1]].split()) > most:
            break
        first, last = grown
    return sentences[first][0], sentences[last][1]


def _cut_anywhere(text: str, order: random.Random) -> str:
    start = order.choice(split_sentences(text))[0]
    a, b = _choose_window(text, (start, start), order)
    return text[a:b]


def _add_title(example: ReadingExample, title: str, order: random.Random) -> ReadingExample:
    if not title or order.random() > TITLED:
        return example
    moved = tuple((a + len(title) + 2, b + len(title) + 2) for a, b in example.answers)
    return replace(example, text=f"{title}. {example.text}", answers=moved)


def _find(answer: str, text: str) -> Span | None:
    start = text.lower().find(answer.lower().strip().rstrip("."))
    return (start, start + len(answer.strip().rstrip("."))) if start >= 0 else None


def _fold(text: str) -> str:
    return " ".join(text.split())


def _fold_span(text: str, answer: dict[str, Any]) -> Span:
    """Where an answer stands once white space is folded; some have their end, others their text."""
    end = answer["end"] if "end" in answer else answer["start"] + len(answer["text"])
    return _fold_offset(text, answer["start"]), _fold_offset(text, end)


def _fold_offset(text: str, offset: int) -> int:
    before = text[:offset]
    folded = _fold(before)
    return len(folded) + (bool(folded) and before[-1].isspace())


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def _read_lines(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]
