"""Asking back where an utterance could mean several things in the collection: one question that names the readings.

An utterance is unclear where it speaks of "the loan" or "this language" as of something known, and neither a name nor
the conversation says which. Its readings are what passages of different documents have for it: names with that noun
("VA Home Loan", "Hurricane Katrina"), else titles with a word of the utterance. Where the reply chooses a reading, the
utterance before is asked again with it. English only.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from indexes.text.analysis import extract_stems, load_stop_words
from indexes.words import list_words, match_any
from schemas.records import Message, Passage, Response, Sentence, TurnResult
from schemas.tuning import ClarificationTuning

MAX_WORDS = 4  # of a noun phrase
MAX_READING_WORDS = 8
MAX_SMALL_WORD = 3  # letters; titles have such in small letters
MAX_REPLY_WORDS = 8  # that choose a reading; a longer reply asks something else
DETERMINER = re.compile(
    rf"\b(?P<auxiliary>(?:{match_any('auxiliaries', ['en'])})\s+)?(?P<word>the|this|that)\s+(?=\w)", re.IGNORECASE
)
WORD = re.compile(r"\s*([A-Za-z][\w-]*)(['’]s?)?")
COMPLEMENT = re.compile(r"\s*(?:(?:of|between|for|from|to|with|on)\b|(?:in|at) (?:my|our)\b)")
# What there is but one of, and what is no thing: "the world", "the difference", "the same".
KNOWN = frozenset((*extract_stems(" ".join(list_words("known"))), *list_words("known")))
CAPITALISED = r"[A-Z][\w&’'-]*"
ARTICLES = re.compile(r"^(?:(?:The|A|An|This|That|These|Your|Our|Each|Any|All|If|In|For|About) )+")
QUESTION = re.compile(r"Do you mean (“[^“”]+”(?:, “[^“”]+”)*) or something else\?")
READING = re.compile(r"“([^“”]+)”")
REPLY_WORD = re.compile(r"[\w'’-]+")
ORDINALS = list_words("ordinals")
FILLERS = frozenset(list_words("reply_fillers"))
DECLINES = FILLERS.union(list_words("declines"))
OPENERS = frozenset(list_words("openers"))


@dataclass(frozen=True, slots=True)
class Reading:
    """One thing that an utterance may mean."""

    name: str
    passage_id: str

    def stems(self) -> frozenset[str]:
        """Of its name."""
        return frozenset(extract_stems(self.name))


def ask_back(
    result: TurnResult, history: Sequence[Message], passages: Sequence[Passage], tuning: ClarificationTuning
) -> TurnResult:
    """A turn with the question in the place of its answer where the utterance is unclear; else as it is.

    `passages` are those of its first hits. The question cites the passages of the readings. It is not asked where a
    direct answer is sure, nor twice in a row.
    """
    is_asked = bool(history) and is_clarification(history[-1].text)
    if is_asked or not passages or not result.responses or result.response.direct:
        return result
    scores = {hit.id: hit.score for hit in result.hits}
    for noun in find_unclear_nouns(result.query.utterance, history):
        readings = find_readings(noun, result.query.utterance, passages)
        if _are_level([scores[passages[0].id], *(scores[reading.passage_id] for reading in readings)], tuning):
            named = readings[: tuning.max_readings]
            response = ask_which([each.name for each in named], [each.passage_id for each in named])
            cited = tuple(passage for passage in passages if passage.id in response.used)
            return replace(result, selected_statements=(), passages=cited, responses=(response,))
    return result


def _are_level(scores: Sequence[float], tuning: ClarificationTuning) -> bool:
    """Whether two readings come near the best passage, whose score is first, and each other."""
    if len(scores) < 3:
        return False
    best, first, second = scores[:3]
    return best - first <= tuning.behind_best and first - second <= tuning.apart


def ask_which(names: Sequence[str], passage_ids: Sequence[str]) -> Response:
    """The question that names several readings, which the passages have."""
    named = ", ".join(f"“{name}”" for name in names)
    return Response((Sentence(f"Do you mean {named} or something else?", tuple(passage_ids)),))


def find_unclear_nouns(utterance: str, history: Sequence[Message]) -> list[str]:
    """The noun phrases that speak of something as known though the conversation has none of their words."""
    said = set(extract_stems(" ".join(message.text for message in history)))
    return [phrase for phrase in _find_definite_nouns(utterance) if not _is_known(phrase, said)]


def _find_definite_nouns(utterance: str) -> Iterator[str]:
    """What follows "the", "this" or "that"; after "the" only what no name and no complement makes definite.

    After an auxiliary the last word is its verb: "does the loan cover".
    """
    for found in DETERMINER.finditer(utterance):
        words, end = _read_words(utterance, found.end())
        has_name = any(word[0].isupper() for word in words)
        if words and (found["word"].lower() != "the" or not (has_name or COMPLEMENT.match(utterance, end))):
            yield " ".join(words[:-1] if found["auxiliary"] and len(words) > 1 else words)


def _read_words(utterance: str, start: int) -> tuple[list[str], int]:
    """The words up to the next function word or punctuation mark, and where they end."""
    words: list[str] = []
    while len(words) < MAX_WORDS and (found := WORD.match(utterance, start)):
        if found[1].lower() in load_stop_words():
            break
        words.append(found[1])
        start = found.end()
        if found[2]:
            break
    return words, start


def _is_known(phrase: str, said: set[str]) -> bool:
    """Whether most words of a phrase were said before, or any is of something that is always known."""
    words = phrase.lower().split()
    earlier = sum(not said.isdisjoint(extract_stems(word)) for word in words)
    return 2 * earlier > len(words) or not KNOWN.isdisjoint({*words, *extract_stems(phrase)})


def find_readings(noun: str, utterance: str, passages: Sequence[Passage]) -> list[Reading]:
    """What the passages have for a noun phrase: a reading a document, in their order, none within another."""
    asked = frozenset(extract_stems(utterance))
    readings: dict[str, Reading] = {}
    for passage in passages:
        reading = Reading(_find_name(noun, passage) or _find_subject(passage, asked), passage.id)
        others = [other.stems() for other in readings.values()]
        is_new = not any(reading.stems() <= stems or stems <= reading.stems() for stems in others)
        if is_new and passage.document not in readings and not reading.stems() <= asked:
            readings[passage.document] = reading
    return list(readings.values())


def _find_name(noun: str, passage: Passage) -> str:
    """The most frequent name in a passage that has words of the noun phrase: "VA Home Loan" for "loan"."""
    words = [re.escape(word) for word in noun.split()]
    ending = rf"(?:{CAPITALISED} ){{1,3}}(?i:(?:{'|'.join(words)})s?\b(?: - |[ -])?)+"
    opening = rf"(?:{'|'.join(word.capitalize() for word in words)})(?: {CAPITALISED}){{1,2}}"
    names = Counter(re.findall(rf"\b(?:{ending}|{opening})", f"{passage.title}\n{passage.text}"))
    return _strip_articles(max(names, key=lambda name: names[name])) if names else ""


def _find_subject(passage: Passage, asked: frozenset[str]) -> str:
    """What a passage is about, where the utterance has a word of that: its title, or its first line if it is short."""
    first = passage.title or passage.text.strip().split("\n")[0]
    subject = _strip_articles(re.split(r" [|–—•-] |: ", first)[0].strip())
    words = [word for word in subject.split() if len(word) > MAX_SMALL_WORD]
    is_title = len(words) <= MAX_READING_WORDS and 2 * sum(word[0].isupper() for word in words) > len(words)
    return subject if is_title and not asked.isdisjoint(extract_stems(subject)) else ""


def _strip_articles(name: str) -> str:
    return ARTICLES.sub("", re.sub(r"[“”]", "", name)).replace(" - ", "-").strip(' -–"')


def is_clarification(text: str) -> bool:
    """Whether a message of the assistant is a question of ours."""
    return bool(QUESTION.fullmatch(text.strip()))


def complete_utterance(history: Sequence[Message], utterance: str) -> tuple[Sequence[Message], str]:
    """The utterance before, with the reading that this one chooses, and the history before that.

    Both as they are where the last message is no question of ours, or where the utterance asks something else. Where it
    declines all readings, the utterance before is asked as it was.
    """
    if len(history) < 2 or not is_clarification(history[-1].text):
        return history, utterance
    before = history[-2].text
    if DECLINES.issuperset(REPLY_WORD.findall(utterance.lower())):
        return history[:-2], before
    chosen = choose_reading(utterance, READING.findall(history[-1].text))
    return (history[:-2], f"{before} ({chosen})") if chosen else (history, utterance)


def choose_reading(reply: str, names: Sequence[str]) -> str:
    """The reading that a reply chooses, by number or by its words, or one of its own; empty for another question."""
    words = REPLY_WORD.findall(reply.lower())
    if not words or len(words) > MAX_REPLY_WORDS:
        return ""
    for place, name in enumerate(names):
        numbers = {ORDINALS[place], str(place + 1), *(("last", "latter") if name == names[-1] else ())}
        if set(words) <= numbers | FILLERS and not numbers.isdisjoint(words):
            return name
    stems = frozenset(extract_stems(reply))
    shared = [len(stems & frozenset(extract_stems(name))) for name in names]
    chosen = [name for name, count in zip(names, shared, strict=True) if count == max(shared) > 0]
    if not stems or words[0] in OPENERS:
        return ""
    if len(chosen) == 1:
        return chosen[0]
    return "" if reply.rstrip().endswith("?") else reply.strip(" .!")
