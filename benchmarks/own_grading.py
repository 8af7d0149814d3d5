"""Questions over own documents, and answers to them graded by patterns alone.

| of an answer | |
|---|---|
| first | its first sentence answers: it has all patterns of `first`, and cites the source |
| right | all patterns of `anywhere` stand in it, and every source is cited; first ones are right, too |
| partly | some of these patterns, or all of them without the source |
| wrong | it has what it must not have, lacks a warning, or is about something else and does not say so |
| honest | it says that there is no answer, and there is none |
| false | it says that there is no answer before, or instead of, one that is there; never "first" |

An answer that is wrong is not right. The first sentence is the one after a bold direct answer ("**Nine days.**"),
together with it; a sentence that introduces a list counts with its list. What stands under "Also nearby" is not graded.
"""

import re
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from agent.turn.interface_sentences import NOT_FOUND_SENTENCES, starts_with_not_found, strip_not_found
from indexes.storage.files import read_utf8
from indexes.text.sentences import split_sentences
from schemas.errors import InvalidInputError
from schemas.records import Response
from schemas.wire import decode

Kind = Literal[
    "fact", "follow-up", "yes-no", "comparison", "not-there", "personal", "topic-switch", "small-talk",
    "summary", "listing", "computation", "scope", "date",
]  # fmt: skip
Half = Literal["open", "kept"]
Halves = Literal["open", "kept", "all"]


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One turn of a conversation, and what its answer must and must not have. Patterns ignore case."""

    id: str
    kind: Kind
    ask: str
    asks: str = ""  # what for: number, date, duration, place, person, reason, how-to, definition, list, correction ...
    first: tuple[str, ...] = ()  # all of them in the first sentence
    anywhere: tuple[str, ...] = ()  # all of them in the answer; those of `first`, where there are none
    partly: tuple[str, ...] = ()  # any of them makes an answer partly right; so do those of `first` and `anywhere`
    source: tuple[str, ...] = ()  # files that must be cited; "a.md|b.md": one of them
    answer: Literal["", "yes", "no"] = ""  # an answer that opens with the opposite is wrong
    wrong: tuple[str, ...] = ()  # none of them in the answer
    wrong_first: tuple[str, ...] = ()  # none of them in the first sentence
    excluded: tuple[str, ...] = ()  # what must not be recommended
    warning: tuple[str, ...] = ()  # all of them in the answer: it is dangerous without

    @property
    def wanted(self) -> tuple[str, ...]:
        """The patterns that a right answer has."""
        return self.anywhere or self.first


class Conversation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Turns in order, and statements about the person that were made before (`/about-me add`)."""

    id: str
    half: Half
    about: tuple[str, ...]
    turns: tuple[Question, ...]


class Conversations(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file."""

    note: str
    conversations: tuple[Conversation, ...]


def read_conversations(questions: Path, half: Halves = "all") -> tuple[Conversation, ...]:
    """The conversations of a half, or of both. Raises `InvalidInputError` for a file that is none of these."""
    try:
        found = decode(read_utf8(questions), Conversations).conversations
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"holds no questions ({error})", where=str(questions)) from error
    return tuple(conversation for conversation in found if half in ("all", conversation.half))


MAX_DIRECT_WORDS = 15  # of a bold direct answer; longer bold text is a sentence like any other

# How an answer says that there is none: `NOT_FOUND_SENTENCES`, and what a model may write.
NOT_FOUND = re.compile(
    r"\W*(?:I (?:found|could find|can find|have found|find) (?:no|nothing)\b|I (?:could|can|did) ?(?:not|n't) find\b"
    r"|I (?:do not|don't) know\b|(?:The|Your) (?:documents|passages|sources)\b[^.]* (?:not|nothing|no)\b"
    r"|(?:There is|I see) nothing\b|None of (?:the|your) documents\b"
    r"|Ich (?:habe|konnte|kann) (?:dazu |dafür |darauf )?(?:keine?n?|nichts)\b|Je n'ai (?:rien|pas) trouvé\b"
    r"|No (?:he encontrado|encontré|encuentro)\b|Non (?:ho trovato|trovo)\b|Ik (?:heb|kon|kan|vind) (?:geen|niets)\b"
    rf"|{'|'.join(map(re.escape, NOT_FOUND_SENTENCES))})",
    re.IGNORECASE,
)
NEAREST = re.compile(r"^\W*(?:What comes nearest|The nearest)[^.:]*:\s*", re.IGNORECASE)
NEARBY = re.compile(r"(?:^|\n)\W*Also nearby\b", re.IGNORECASE)  # what follows is folded away
DIRECT = re.compile(r"\*\*(?P<answer>[^*]+)\*\*\s*")
LIST_LINE = re.compile(r"\s*(?:[-*•]|\d+[.)])\s")
# A remark on the person does not answer: it counts with the sentence after it, and may name what it leaves out.
REMARK = re.compile(r"^\W*(?:You (?:told me|said)|(?:Because|Since|As|Knowing that) you)\b", re.IGNORECASE)
# "am 3. | Mai", "Nr. | 5", "Dr. | Thoma": a sentence that is cut here goes on.
CUT_SHORT = re.compile(r"\b(?:Nr|No|Dr|Mr|Mrs|Ms|Hr|St|z|u|a|e|mind|vgl|ca|bzw|approx|Oct|Sept|Nov|Dec|Feb|Jan)\.$")
ORDINAL = re.compile(r"\b\d{1,2}\.$")
GOES_ON = re.compile(
    r"[a-zäöü(\d]|Jan|Feb|M[aä]r|Apr|Ma[iy]|Jun|Jul|Aug|Sep|O[ck]t|Nov|De[cz]|Vorsitzende"
)  # after an ordinal


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as it is graded: without its opening that says that there is none, and without what is folded away."""

    text: str
    first: str  # its first sentence, with a direct answer before it
    not_found: bool  # whether it opens by saying that there is no answer
    cited: frozenset[str]  # files
    cited_first: frozenset[str]  # files that the first sentence cites
    words: int  # of all that is shown unfolded


def read_answer(response: Response) -> Answer:
    """An answer taken apart."""
    pieces = [(sentence.text, frozenset(map(file_of, sentence.passage_ids))) for sentence in response.sentences]
    if response.direct and pieces:
        pieces[0] = (f"**{response.direct}** {pieces[0][0]}", pieces[0][1])
    shown = list(_cut_at_fold(pieces))
    words = sum(len(text.split()) for text, _ in shown)
    not_found = not shown or bool(NOT_FOUND.match(shown[0][0]))
    if not_found and shown:
        shown = [(_strip_not_found(shown[0][0]), shown[0][1]), *shown[1:]]
    text = " ".join(text for text, _ in shown).strip()
    first = find_first(text)
    files = frozenset(file for _, cited in shown for file in cited)
    return Answer(plain(text), plain(first), not_found, files, _cited_within(shown, first), words)


def file_of(passage_id: str) -> str:
    """The file that a passage is from: `recipes/bread.md` of `recipes/bread.md:12-18`."""
    return passage_id.rsplit(":", 1)[0]


def plain(text: str) -> str:
    """Text on one line, without asterisks, and with plain quotation marks."""
    return " ".join(text.replace("*", "").replace("’", "'").split())


def _cut_at_fold(pieces: Iterable[tuple[str, frozenset[str]]]) -> Iterator[tuple[str, frozenset[str]]]:
    for text, cited in pieces:
        fold = NEARBY.search(text)
        if fold is None:
            yield text, cited
            continue
        if text[: fold.start()].strip():
            yield text[: fold.start()], cited
        return


def _strip_not_found(text: str) -> str:
    if starts_with_not_found(text):
        return strip_not_found(text)
    return NEAREST.sub("", " ".join(split_sentences(text)[1:]))


def find_first(text: str) -> str:
    """The first sentence: with a direct answer or a remark on the person before it, and with the list it introduces."""
    direct = DIRECT.match(text)
    start = direct.end() if direct and len(direct["answer"].split()) <= MAX_DIRECT_WORDS else 0
    head, *lines = text[start:].split("\n")
    sentences = list(join_cut_sentences(split_sentences(head)))
    taken = 2 if sentences and REMARK.match(sentences[0]) else 1
    found = " ".join(sentences[:taken])
    if len(sentences) <= taken:
        listed = next((n for n, line in enumerate(lines) if not LIST_LINE.match(line)), len(lines))
        found = "\n".join([found, *lines[:listed]])
    return text[:start] + found


def join_cut_sentences(sentences: Sequence[str]) -> Iterator[str]:
    """Sentences, put together again where they were cut after an abbreviation or an ordinal."""
    held = ""
    for sentence in sentences:
        if held and not (CUT_SHORT.search(held) or (ORDINAL.search(held) and GOES_ON.match(sentence))):
            yield held
            held = ""
        held = f"{held} {sentence}".strip()
    if held:
        yield held


def _cited_within(shown: Sequence[tuple[str, frozenset[str]]], first: str) -> frozenset[str]:
    """The files that the sentences of a response cite which begin within its first sentence."""
    length, start = len(plain(first)), 0
    files: set[str] = set()
    for text, cited in shown:
        if start < length:
            files |= cited
        start += len(plain(text)) + 1 if plain(text) else 0
    return frozenset(files)


LEFT_OUT = re.compile(r"\b(?:left out|leave out|leaving out|not for you|avoid|unsuitable)\b", re.IGNORECASE)
OPENING = re.compile(r"^\W*(?P<word>yes|no|ja|nein|oui|non|sí|sì|nee)\W*(?:[.,:;!*—–-]|$)", re.IGNORECASE)
AFFIRMATIVE = dict.fromkeys(("yes", "ja", "oui", "sí", "sì"), "yes") | dict.fromkeys(("no", "nein", "non", "nee"), "no")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an answer is worth."""

    first: bool = False
    right: bool = False
    partly: bool = False
    wrong: str = ""  # why it is wrong; "" where it is not
    honest: bool = False  # says that there is no answer, where there is none
    false: bool = False  # says so where there is one
    words: int = 0


def has(pattern: str, text: str) -> bool:
    return bool(re.search(pattern, text, re.IGNORECASE))


def has_source(source: str, files: Iterable[str]) -> bool:
    return not set(source.split("|")).isdisjoint(files)


def grade(question: Question, answer: Answer) -> Verdict:
    """The verdict on an answer."""
    if question.kind == "not-there":
        wrong = "" if answer.not_found else "answers what no document says"
        return Verdict(not wrong, not wrong, wrong=wrong, honest=not wrong, words=answer.words)
    wrong = find_fault(question, answer)
    if wrong:
        return Verdict(wrong=wrong, false=answer.not_found, words=answer.words)
    right = all(has(pattern, answer.text) for pattern in question.wanted)
    right = right and all(has_source(source, answer.cited) for source in question.source)
    sourced = not question.source or any(has_source(source, answer.cited_first) for source in question.source)
    first = sourced and all(has(pattern, answer.first) for pattern in question.first)
    partly = any(has(pattern, answer.text) for pattern in (*question.first, *question.anywhere, *question.partly))
    if not (right or partly or answer.not_found):
        return Verdict(wrong="is about something else", words=answer.words)
    first = right and first and not answer.not_found
    return Verdict(first, right, partly and not right, false=answer.not_found, words=answer.words)


def find_fault(question: Question, answer: Answer) -> str:
    """What an answer has that it must not have, or lacks though it is dangerous without; "" for neither."""
    return next(_list_faults(question, answer), "")


def _list_faults(question: Question, answer: Answer) -> Iterator[str]:
    if question.kind == "small-talk" and answer.cited:
        yield "cites documents"
    opening = OPENING.match(answer.text)
    if question.answer and opening and AFFIRMATIVE[opening["word"].lower()] != question.answer:
        yield f"says {opening['word']!r}"
    yield from (f"has {pattern!r}" for pattern in question.wrong if has(pattern, answer.text))
    yield from (f"begins with {pattern!r}" for pattern in question.wrong_first if has(pattern, answer.first))
    offered = " ".join(text for text in split_sentences(answer.text) if not is_remark(text))
    yield from (f"recommends {pattern!r}" for pattern in question.excluded if has(pattern, offered))
    if answer.text:
        yield from (f"lacks the warning {one!r}" for one in question.warning if not has(one, answer.text))


def is_remark(sentence: str) -> bool:
    """Whether a sentence says what was left out for this person, and so recommends nothing."""
    return bool(REMARK.match(sentence) or LEFT_OUT.search(sentence))


def count_verdicts(verdicts: Sequence[Verdict]) -> dict[str, float | int]:
    """Shares of answers that are first, right, partly right and wrong; how many are honest and false; mean words."""
    shares = {
        name: sum(bool(getattr(verdict, name)) for verdict in verdicts) / len(verdicts)
        for name in ("first", "right", "partly", "wrong")
    }
    counts = {name: sum(getattr(verdict, name) for verdict in verdicts) for name in ("honest", "false")}
    words = round(statistics.mean(verdict.words for verdict in verdicts))
    return {"questions": len(verdicts), **shares, **counts, "words": words}
