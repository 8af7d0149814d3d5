"""An answer taken apart as it is graded: its first sentence, whether it says that there is none, the files it cites."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from agent.turn.interface_sentences import NOT_FOUND_SENTENCES, starts_with_not_found, strip_not_found
from indexes.text.sentences import split_sentences
from schemas.records import Response

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
