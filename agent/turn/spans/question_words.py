"""The words of a question and of a sentence as stems, with the irregular verbs that a stemmer keeps apart."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from agent.turn.attribution import DIGITS, MEANINGFUL_STOP_WORDS
from indexes.text.analysis import ENGLISH, extract_stems, load_stop_words

_IRREGULAR = (
    "keep kept;pay paid;buy bought;sell sold;write wrote written;hold held;meet met;send sent;begin began "
    "begun start;"
    "leave left;build built construct;lend lent;find found;take took taken;give gave given;make made;see saw "
    "seen;wear wore worn;"
    "go goes went gone;come came;become became;eat ate eaten;drive drove driven;fly flew flown;grow grew "
    "grown;know knew known;"
    "sing sang sung;teach taught;win won;lose lost;break broke broken;choose chose chosen;draw drew drawn;hang hung;"
    "weigh weight;lie lay lain;rise rose risen;ring rang rung;speak spoke spoken;steal stole stolen;sleep slept;"
    "close closing;open opening;tell told;get got gotten;rehearse rehearsal;child children;foot feet;tooth "
    "teeth;man men;"
    "woman women;life live;person people;repair mend fix"
)
_WORD = re.compile(r"\d(?:[\d.,:]*\d)?|[^\W_]+")
_PARTICLE = re.compile(r"(?P<verb>\w+)-(?P<particle>in|out|up|off|on|down)\b")
_GERMAN = re.compile(
    r"\b(?:wie|wann|wo|wer|wem|warum|wieso|welche[rsn]?|der|das|ist|sind|ich|nicht|und|ein|eine|mit|für)\b"
)


# Words in whose place another makes another thing of it: the front tyre and the rear one.
_CONTRASTS = (
    "red green blue yellow black white grey brown orange purple pink first second third fourth fifth last next "
    "previous front rear back left right upper lower inner outer top bottom old new young big small large little "
    "adult child main spare north south east west summer winter spring autumn morning evening night minimum maximum "
    "monday tuesday wednesday thursday friday saturday sunday january february march april june july august "
    "september october november december rot grün blau erste zweite letzte"
)
CONTRASTS = tuple(_CONTRASTS.split())
_DIMENSIONS = {
    "height": "tall high height hoch höhe",
    "width": "wide broad width breadth breit breite",
    "depth": "deep depth tief tiefe",
    "thickness": "thick thickness dick dicke",
    "length": "long length lang länge",
    "diameter": "diameter durchmesser",
}
_CONDITION = re.compile(
    r"\b(?:only|unless|except|excepting|may|might|could|should|would|if|when|whether|where|until|till|provided|"
    r"permission|"
    r"request|depending|depends|subject to|as long as|otherwise|however|though|although|but|perhaps|maybe|"
    r"probably|possibly|"
    r"usually|normally|mostly|mainly|often|sometimes|rarely|hardly|partly|almost|nearly|some|most|few|limited|agreed|"
    r"planned|stop|stops|stopped|refuse\w*|fail\w*|lack\w*|cease\w*|den(?:y|ies|ied)|former\w*|instead|rather|"
    r"used to|no longer|said to|believed|claims?|nur|außer|wenn|falls|sofern|manchmal|meist\w*|vielleicht|"
    r"eventuell|aber)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A sentence that may answer, and the headings that it stands under."""

    text: str
    heading: str = ""


def is_conditional(sentence: str) -> bool:
    """Whether a sentence has a condition, an exception or a hedge."""
    return bool(_CONDITION.search(sentence))


@lru_cache(maxsize=4096)
def stem_words(text: str, language: str = ENGLISH) -> tuple[str, ...]:
    """The stems of the words that say something, in order; irregular English forms as their infinitive's."""
    if language != ENGLISH:
        return tuple(extract_stems(text, language))
    plain = _PARTICLE.sub(
        r"\g<verb>\g<particle>", _drop_german_fillers(text).lower().replace("’", "'").replace("'s", "")
    )
    words = [word for word in _WORD.findall(plain) if word not in _filler_words()]
    stems = [stem for word in words for stem in _stem(word)]
    return tuple(_base_forms().get(stem, stem) for stem in stems)


def _stem(word: str) -> list[str]:
    """`4,500` is `4500`, `three` is `3`."""
    if word[0].isdigit():
        return [word.replace(",", "")]
    return [DIGITS[word]] if word in DIGITS else extract_stems(word)


@cache
def _filler_words() -> frozenset[str]:
    return load_stop_words() - MEANINGFUL_STOP_WORDS - set(CONTRASTS)


def dimensions_of(text: str) -> set[str]:
    """Which dimensions a text speaks of: a wardrobe's height is not its depth."""
    words = set(_WORD.findall(text.lower()))
    return {name for name, group in _DIMENSIONS.items() if words & set(group.split())}


def is_german(text: str) -> bool:
    """Whether a text has one of the commonest German words."""
    return bool(_GERMAN.search(text.lower()))


def _drop_german_fillers(text: str) -> str:
    if not is_german(text):
        return text
    return " ".join(word for word in text.split() if word.lower().strip("?,.;:!") not in load_stop_words("de"))


@cache
def _base_forms() -> Mapping[str, str]:
    """The stem of every irregular form, and the stem that stands for it."""
    forms = [[stem for word in group.split() for stem in extract_stems(word)] for group in _IRREGULAR.split(";")]
    return {stem: group[0] for group in forms for stem in group[1:]}
