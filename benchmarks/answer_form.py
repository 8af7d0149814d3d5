"""How well formed answers are: whether they dangle, and whether headings or boilerplate are glued to them.

    python benchmarks/answer_form.py FILE [FILE ...] [--passages FILE]

A file is a run with answers or a trace. A row has the shares of answers whose first sentence points back to something
that was left out; of all sentences that do; and of answers, then sentences, that begin with a heading, a byline or
navigation. A sentence dangles where it points back and what stands right before it in a passage that the answer cites
does not stand right before it in the answer. Where the passage's text is neither in the file nor in `--passages` (JSON
lines as `convagent index` reads them), every sentence that points back counts as dangling.

What points back and what is glued is told by the lists below, on purpose apart from those that the answers are made
by (`indexes/text`): plainer, and wrong in other places.
"""

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.runs.trace import read_trace
from agent.tracks.files import read_run
from agent.tracks.lenient_reading import report_oddities
from agent.tracks.run_records import RunResponse
from agent.turn.interface_sentences import strip_not_found
from indexes.corpora.corpus import find_corpus
from schemas.records import Passage, Response

MAX_GAP = 60  # characters, as of a heading or a note's number, between two sentences that stand side by side
ENDS = ' .:;,-–—*"'
POINTERS = re.compile(
    r"""["'“(*]*(?:
    (?:he|she|they|him|them|his|hers?|their|theirs|its)\b
    |it(?:['’]s|['’]ll)?\s(?!(?:is|was|can\sbe|may\sbe)\s(?:\w+\s)?
        (?:important|possible|necessary|best|recommended|advisable|essential|crucial|estimated|known|worth|easy|hard)\b)
    |(?:this|these|those|that)\b(?!\s(?:who|article|page|guide|post)\b)
    |(?:however|but|and|or|so|then|thus|hence|therefore|also|besides|moreover|furthermore|additionally|otherwise|instead
        |nevertheless|consequently|similarly|likewise|meanwhile|afterwards|finally|lastly|secondly|thirdly|next|yet)
        [,\s](?!(?:of|than|far|to)\s)
    |(?:for\s(?:example|instance)|in\s(?:addition|contrast|other\swords|fact|turn)|as\sa\sresult|on\sthe\sother\shand
        |in\sthat\scase|in\sthis\scase|as\ssuch|after\s(?:that|this)|because\sof\s(?:this|that)|if\s(?:so|not)),
    |(?:in|on|at|by|with|for|from|of|after|before|during|to|all\sof|some\sof|many\sof|most\sof|one\sof|both\sof)\s
        (?:this|these|those|that|them|it|such)\b(?!\s(?:article|page|guide|post|who)\b)
    |the\s(?:latter|former|same|other)\s
    |such\s(?:a|an|as)?\b
    |(?:er|dies|dieser|diese|dieses|diesem|diesen|letztere[rs]?|aber|jedoch|allerdings|außerdem|deshalb|daher|danach|dabei
        |dadurch|dann|trotzdem|dennoch|sonst|andernfalls|zudem)\s
    )""",
    re.IGNORECASE | re.VERBOSE,
)
NOISE = re.compile(
    r"""(?:
    (?:\S+\s){0,12}(?:»|›|\|)\s
    |(?:\[\s?\w{1,4}\s?\]|\w{1,3}\])\s
    |(?:\S+\s){0,8}\S*\[edit\]\s
    |(?:\S+\s){0,10}(?:[Bb]y|BY)\s[A-Z][\w.-]+\s[A-Z][\w.-]+,?\s(?:[A-Z|·•]|[Uu]pdated|[Oo]n\s)
    |(?:[Ll]ast\s)?(?:Updated|Published|Posted|Reviewed|Answered)\s(?:on\s|by\s|\d|[A-Z])
    |(?:Home|Menu|Share|Tweet|Advertisement|Subscribe|Skip\sto|Read\s[Mm]ore|Watch\son|Related|Table\s[Oo]f\s[Cc]ontents
        |Contents|Copyright|©|Cookies?|Print|Sign\s[Uu]p)\b\s?(?=[A-Z:|»\d])
    |(?:\d+\.\s)?(?:[A-Z]\S*\s){1,9}[A-Z]\S*[^\s.,;:]\s(?:The|This|These|There|If|When|While|Although|It|In|As|Many|Most)\s[a-z]
    |\d{1,2}[.)]\s(?:[A-Z]\S*\s){1,6}(?:The|This|There|If|When|While|It|In|You|We)\s[a-z]
    |(?P<first>[A-Z]\w+(?:\s\w+){0,4})\s(?i:(?P=first))\s[a-z]
    |(?:[A-Z][\w’'-]+\s){1,6}(?P<word>[A-Z]\w{3,})\s(?P=word)\s[a-z]
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer's sentences and the texts of the passages that it cites."""

    sentences: tuple[str, ...]
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """What was counted in some answers."""

    answers: int
    sentences: int
    dangling_openings: float  # share of answers
    dangling_sentences: float  # share of sentences
    glued_openings: float  # share of answers
    glued_sentences: float  # share of sentences


def points_back(sentence: str) -> bool:
    return bool(POINTERS.match(sentence))


def is_glued(sentence: str) -> bool:
    """Whether a heading, a byline or navigation stands at the front of a sentence."""
    return bool(NOISE.match(sentence.lstrip("*")))


def dangles(answer: Answer, place: int) -> bool:
    """Whether a sentence points back to something that does not stand right before it."""
    if not points_back(answer.sentences[place]):
        return False
    return place == 0 or not any(
        _stand_side_by_side(answer.sentences[place - 1], answer.sentences[place], source) for source in answer.sources
    )


def _stand_side_by_side(one: str, other: str, source: str) -> bool:
    at = source.find(other.strip(ENDS))
    if at < 0:
        return False
    wanted = one.strip(ENDS)
    before = source[max(0, at - len(wanted) - MAX_GAP) : at]
    _, found, gap = before.rpartition(wanted)
    return bool(found) and not re.search(r"[.!?]\s", gap.lstrip(f"{ENDS}!?”)"))


def measure_form(answers: Sequence[Answer]) -> Form:
    """The shares over all answers that say something."""
    told = [answer for answer in answers if answer.sentences]
    sentences = [(answer, place) for answer in told for place in range(len(answer.sentences))]
    return Form(
        len(told),
        len(sentences),
        _share([dangles(answer, 0) for answer in told]),
        _share([dangles(answer, place) for answer, place in sentences]),
        _share([is_glued(answer.sentences[0]) for answer in told]),
        _share([is_glued(answer.sentences[place]) for answer, place in sentences]),
    )


def _share(found: Sequence[bool]) -> float:
    return sum(found) / max(1, len(found))


def read_answers(path: Path, texts: Mapping[str, str]) -> list[Answer]:
    """The first response of each turn of a run or a trace."""
    data = path.read_bytes()
    if b'"trace_version"' in data[: data.find(b"\n")]:
        return list(_read_traced_answers(path, texts))
    with report_oddities(path) as oddities:
        _, _, turns = read_run(data, oddities)
        return [_from_run(turn.responses[0], texts) for turn in turns.values() if turn.responses]


def _read_traced_answers(path: Path, texts: Mapping[str, str]) -> Iterator[Answer]:
    for line in read_trace(path).lines():
        known = {**texts, **{passage.id: passage.text for passage in line.answered.passages}}
        yield _from_response(line.answered.response, known)


def _from_response(response: Response, texts: Mapping[str, str]) -> Answer:
    sentences = [strip_not_found(sentence.text) for sentence in response.sentences]
    sources = [fold(texts[id]) for id in response.used if id in texts]
    return Answer(tuple(fold(sentence) for sentence in sentences if sentence), tuple(sources))


def _from_run(response: RunResponse, texts: Mapping[str, str]) -> Answer:
    known = {**texts, **{passage.id: passage.text for passage in response.passages or () if passage.text}}
    sources = tuple(fold(known[hit.id]) for hit in response.used if hit.id in known)
    return Answer(tuple(cut_sentences(strip_not_found(response.text or ""))), sources)


def cut_sentences(text: str) -> list[str]:
    """The sentences of an answer. A capital letter or a digit begins one after a full stop behind a longer word."""
    return [part for part in re.split(r"""(?<=[\w)”"'’%]{3}[.!?])\s+(?=["“(]?[A-ZÄÖÜ\d])""", fold(text)) if part]


def fold(text: str) -> str:
    return " ".join(text.split())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, help="runs with answers, or traces")
    parser.add_argument("--passages", nargs="*", type=Path, default=[], help="passage files with the texts of a run")
    asked = parser.parse_args()
    corpus = find_corpus(asked.passages) if asked.passages else ()
    texts = {found.id: found.text for _, _, found in corpus if isinstance(found, Passage)}
    print("| file | answers | sentences | dangling openings | dangling sentences | glued openings | glued sentences |")
    print("|---|---|---|---|---|---|---|")
    for path in asked.files:
        form = measure_form(read_answers(path, texts))
        shares = form.dangling_openings, form.dangling_sentences, form.glued_openings, form.glued_sentences
        print(
            f"| {path.name} | {form.answers} | {form.sentences} |", " | ".join(f"{share:.3f}" for share in shares), "|"
        )


if __name__ == "__main__":
    main()
