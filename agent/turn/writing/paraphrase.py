"""Whether some sentences mean what another one says in nearly their words.

It may join, and put what opens a sentence at its end; words of its own must be known otherwise: from the question, what
is known of the person, or the headings. Numbers, names, negations, conditions and hedges are kept
(`benchmarks/paraphrases.py` measures it), and the order of the words (`keeps_order`).
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from agent.turn.attribution import CONDITIONS, HEDGES, NEGATIONS, PARTS, is_excerpt, is_subsequence, tokenize
from agent.turn.question_words import find_names, stem_words

MOST_OWN = 0.5  # of the words of a sentence that are known otherwise
USED = 0.5  # of the words of a clause: then it is said
SAYS_NOTHING = {"1", "cost", "take", "call", "includ", "mean", "per", "get"}  # "one of"
WEAK = {"when", "where", "whenever"}  # of the conditions
BEFORE_NUMBERS = {"about", "around"}
_PERSON = re.compile(r"\b(?:i|we|you|he|she|my|our|your|his|her|us|me|yes|no)\b")
SPEAKERS = {"i", "we", "my", "our", "us", "me"}
_OPENING = re.compile(
    r"((?:in|on|at|from|by|during|around|between|before|after|until|for|with)\b[^,]+?)\s*,\s*(.+)", re.I
)


def is_meant(written: str, sources: Sequence[str], headings: str, asked: str, *, answers: bool = False) -> bool:
    """Whether some sentences mean what is written.

    Other words than theirs may be of the headings above them, or what was asked; names of the headings alone. What
    `answers`, with the words that a reader finds in them, may say the question again, with its names and negations.
    """
    if any(is_excerpt(written, source) for source in sources):
        return True
    said, held = Counter(stem_words(written)), Counter(stem_words(" . ".join(sources)))
    own = [stem for stem in (said - held).elements() if stem not in SAYS_NOTHING]
    known = set(stem_words(headings)) | (set(stem_words(asked)) - (set() if answers else find_names(f"x {written}")))
    persons = set(_PERSON.findall(written.lower())) - set(_PERSON.findall(" ".join(sources).lower()))
    if answers:
        persons -= _find_addressed(asked)
    if persons or not said or not known.issuperset(own) or (len(own) > MOST_OWN * said.total() and not answers):
        return False
    asked_not = _count_negations(tokenize(asked)) if answers else 0
    is_in_order = all(_keeps_names_in_order(written, source) for source in sources)
    return is_in_order and _denies_and_limits_alike(written, sources, asked_not)


def _find_addressed(asked: str) -> set[str]:
    """The persons of a question, as it and its answer name them."""
    persons = set(_PERSON.findall(asked.lower()))
    return persons | ({"you", "your"} if persons & SPEAKERS else set())


def keeps_order(written: str, sources: Sequence[str], asked: str) -> bool:
    """Whether each part of what is written has its words, without those that were asked, in the order of a source."""
    known = set(stem_words(asked)) | SAYS_NOTHING
    held = [stem_words(text) for source in sources for text in (source, _open_last(source))]
    parts = ([stem for stem in stem_words(part) if stem not in known] for part in PARTS.split(written))
    return all(any(is_subsequence(part, stems) for stems in held) for part in parts)


def _open_last(text: str) -> str:
    """A sentence with what opens it at its end."""
    opened = _OPENING.fullmatch(text)
    return f"{opened[2]} {opened[1]}" if opened else text


def _keeps_names_in_order(written: str, source: str) -> bool:
    """Whether the names, and the numbers, that both have stand in the same order."""
    names = find_names(f"x {written}") & find_names(f"x {source}")
    said, held, moved = map(stem_words, (written, source, _open_last(source)))
    for kind in (names, {stem for stem in said if stem[0].isdigit()}):
        common = [stem for stem in dict.fromkeys(said) if stem in kind and stem in held]
        if not (is_subsequence(common, held) or is_subsequence(common, moved)):
            return False
    return True


def _denies_and_limits_alike(written: str, sources: Sequence[str], asked_not: int) -> bool:
    """Whether all is written that makes less of a clause that is said, and as much is denied.

    `asked_not` negations of what was asked may be said again.
    """
    said, tokens, denied = set(stem_words(written)), tokenize(written), 0
    for source in sources:
        clauses = [(clause, set(stem_words(clause))) for clause in PARTS.split(source)]
        used = [clause for clause, stems in clauses if len(said & stems) >= USED * len(stems)]
        kept = [token for clause in used for token in tokenize(clause)]
        lost = set(_find_hedges(kept)) | set(tokenize(source) if used else ()) & CONDITIONS - WEAK
        if not lost.issubset(tokens):
            return False
        denied += _count_negations(kept)
    return _count_negations(tokens) in (denied, denied + asked_not)


def _find_hedges(tokens: Sequence[str]) -> Iterator[str]:
    """Those of "about" and "around" that stand before a number, and all others."""
    for token, following in zip(tokens, [*tokens, ""][1:], strict=True):
        if token in HEDGES and (token not in BEFORE_NUMBERS or following[:1].isdigit()):
            yield token


def _count_negations(tokens: Sequence[str]) -> int:
    return sum(token in NEGATIONS or token.endswith("n't") for token in tokens)
