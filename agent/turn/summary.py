"""The summary of a whole document: its most telling sentences in their order, from all of its sections.

A sentence tells much where it is near what the document says on the whole (the centroid: Radev et al., 2004). Of each
section the best comes first, the longer sections first, then what is left, without repetitions.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from agent.tracks.response_length import MAX_TOKENS, leading_within_limit
from agent.turn.attribution import supporting_ids
from agent.turn.conclusions.tables.rows import find_tables
from agent.turn.quotes import Quote, find_quotes
from agent.turn.whole_documents import WholeAnswer, WholeDocuments, stem_path
from indexes.ranking.vectors import Embed
from indexes.text.analysis import word_set
from schemas.records import Hit, Passage, Query, Response, Sentence
from schemas.tuning import AnswerTuning

SUMMARY_WORDS = 120  # at most; more than of another answer
MAX_EMBEDDED = 300  # sentences of a document; those of a longer one are compared by their words
MIN_WORDS = 5  # of a sentence that may stand in a summary
SHORT_WORDS = 8  # a shorter one seldom says much alone
SHORT, DOUBTFUL, FIGURE = -0.15, -0.1, 0.1  # what is added to the score of such a sentence, and of one with a number
SHOWN_ROWS = 3  # of a document that is a table
SURE_HITS = 3  # that all have to be of one document, where no name says which is meant
_ASKS = re.compile(
    r"(?:please |can you |could you |would you )*(?:summari[sz]e|sum up|outline|give me (?:a|an|the) (?:short |brief )?"
    r"(?:summary|overview|outline) of|what are the (?:main|key) (?:points|facts|messages) (?:of|in)|(?:a |the )?"
    r"(?:short |brief )?(?:summary|overview) of|fass\w* (?=.* zusammen)|zusammenfassung (?:von|des|der))\s+"
    r"(?P<subject>.+?)"
    r"(?: (?:for me|please|briefly|in short|zusammen))*",
    re.IGNORECASE,
)
_COMPARES = re.compile(
    r"(?:please )?compare (?:(?:the|my|our|these) )?(?:(?:two|both) (?P<kind>.+)"
    r"|(?P<first>\S+\.\w+) (?:and|with|to) (?P<second>\S+\.\w+))",
    re.IGNORECASE,
)
_NO_SUBJECT = word_set(
    "the a an my our your this that these file document documents paper text letter pdf der die das den dem des mein "
    "meine"
)
_POINTS_BACK = re.compile(
    r"(?:it|this|that|them|these|those|all|everything|(?:your |the )?(?:last )?answer)", re.IGNORECASE
)


def summarise(
    utterance: str,
    documents: WholeDocuments,
    search: Callable[[Query], tuple[Hit, ...]],
    embed: Embed | None,
    tuning: AnswerTuning,
) -> WholeAnswer | None:
    """The summary of the document that is asked for; None where none is, or it is not sure which."""
    asked = _ASKS.fullmatch(" ".join(utterance.split()).rstrip(" ?!."))
    if asked is None or _POINTS_BACK.fullmatch(asked["subject"]):
        return None
    name = find_document(asked["subject"], documents, search)
    if name is None:
        return None
    passages = documents.read(name)
    return _describe_table(name, passages) or _quote_central(passages, embed, tuning)


def compare_documents(
    utterance: str, documents: WholeDocuments, embed: Embed | None, tuning: AnswerTuning
) -> WholeAnswer | None:
    """A short summary of each of two documents, named by their files, or the only two of a kind ("the two leases")."""
    asked = _COMPARES.fullmatch(" ".join(utterance.split()).rstrip(" ?!."))
    if asked is None:
        return None
    if asked["kind"]:
        names = documents.find_named(_read_subject(asked["kind"].casefold()))
    else:
        named = (asked["first"].casefold(), asked["second"].casefold())
        names = [name for side in named for name in documents.names if name.casefold().endswith(side) and "." in side]
    answers = [_quote_central(documents.read(name), embed, tuning, SUMMARY_WORDS // 2) for name in names]
    if len(set(names)) != 2 or len(answers) != 2 or answers[0] is None or answers[1] is None:
        return None
    first, second = answers[0], answers[1]
    sentences = (*first.response.sentences, *second.response.sentences)
    return WholeAnswer(Response(sentences), (*first.passages, *second.passages))


def find_document(subject: str, documents: WholeDocuments, search: Callable[[Query], tuple[Hit, ...]]) -> str | None:
    """The document that is named by its path or title, or whose contents alone come first; None where none is sure."""
    plain = subject.strip(" '\"“”‘’`").casefold()
    exact = [name for name in documents.names if plain in (name.casefold(), name.casefold().rpartition("/")[2])]
    wanted = _read_subject(plain)
    if exact or not wanted:
        return exact[0] if len(exact) == 1 else None
    titled = documents.find_named(wanted)
    named = [name for name in titled if wanted <= stem_path(name.rpartition("/")[2])]
    if titled:
        return next((found[0] for found in (named, titled) if len(found) == 1), None)
    found = [hit.id.rpartition(":")[0] for hit in search(Query(plain))[:SURE_HITS]]
    return found[0] if len(found) == SURE_HITS and len(set(found)) == 1 else None


def _read_subject(subject: str) -> set[str]:
    """The stems of what names a document: not "this document"."""
    return stem_path(" ".join(word for word in subject.split() if word not in _NO_SUBJECT))


def _describe_table(name: str, passages: Sequence[Passage]) -> WholeAnswer | None:
    """Of a document that is one table, how many rows and which columns it has, and the first rows."""
    tables = find_tables(name, passages)
    if len(tables) != 1 or tables[0].is_doubtful or len({row.passage.id for row in tables[0].rows}) < len(passages) - 1:
        return None
    rows, columns = tables[0].rows, ", ".join(tables[0].columns)
    opening = Sentence(f"{name} is a table of {len(rows)} rows: {columns}.", ())
    shown = rows[:SHOWN_ROWS]
    sentences = (opening, *(Sentence(row.text, (row.passage.id,)) for row in shown))
    return WholeAnswer(Response(sentences), tuple(dict.fromkeys(row.passage for row in shown)))


def _quote_central(
    passages: Sequence[Passage], embed: Embed | None, tuning: AnswerTuning, words: int = SUMMARY_WORDS
) -> WholeAnswer | None:
    """The most telling sentences of a document, in their order."""
    quotes = [quote for quote in find_quotes(passages, tuning) if len(quote.lead.split()) >= MIN_WORDS]
    if not quotes:
        return None
    chosen = _choose(quotes, _score(quotes, embed), tuning.max_redundancy, words)
    texts = list(dict.fromkeys(text for quote in chosen for text in quote.texts))
    cited = [(text, supporting_ids(text, passages)) for text in leading_within_limit(texts, MAX_TOKENS)]
    sentences = tuple(Sentence(text, ids[:1]) for text, ids in cited if ids)
    used = {id for sentence in sentences for id in sentence.passage_ids}
    return WholeAnswer(Response(sentences), tuple(passage for passage in passages if passage.id in used))


def _score(quotes: Sequence[Quote], embed: Embed | None) -> NDArray[np.float32]:
    """How much each quote tells: how near it is to the mean of all, and whether it says much alone."""
    use_vectors = embed is not None and len(quotes) <= MAX_EMBEDDED
    vectors = embed([quote.headed for quote in quotes]) if embed and use_vectors else _count_stems(quotes)
    centre = vectors.mean(axis=0)
    scores: NDArray[np.float32] = vectors @ centre
    return scores + np.array([_weigh_form(quote) for quote in quotes], dtype=np.float32)


def _weigh_form(quote: Quote) -> float:
    is_short, has_figure = quote.length < SHORT_WORDS, any(letter.isdigit() for letter in quote.lead)
    return SHORT * is_short + DOUBTFUL * quote.doubtful + FIGURE * has_figure


def _count_stems(quotes: Sequence[Quote]) -> NDArray[np.float32]:
    """The quotes as vectors of length 1 of the stems that stand in several."""
    counted = Counter(stem for quote in quotes for stem in quote.headed_stems())
    places = {stem: place for place, (stem, count) in enumerate(counted.most_common(2000)) if count > 1}
    vectors = np.zeros((len(quotes), max(1, len(places))), dtype=np.float32)
    for row, quote in enumerate(quotes):
        vectors[row, [places[stem] for stem in quote.headed_stems() if stem in places]] = 1.0
    lengths: NDArray[np.float32] = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1.0)
    return vectors / lengths


def _choose(quotes: Sequence[Quote], scores: NDArray[np.float32], max_redundancy: float, max_words: int) -> list[Quote]:
    """The best of each section, then what is left, as many as have room; in the order of the document."""
    best_first = sorted(range(len(quotes)), key=lambda n: -float(scores[n]))
    sizes = Counter(quote.heading for quote in quotes)
    leading = {quotes[n].heading: n for n in reversed(best_first)}  # the best of each section
    by_size = sorted(leading.values(), key=lambda n: -sizes[quotes[n].heading])
    chosen, words, stems = list[int](), 0, frozenset[str]()
    for n in dict.fromkeys((*by_size, *best_first)):
        own = quotes[n].stems()
        is_new = len(own & stems) <= max_redundancy * max(1, len(own))
        if is_new and words + quotes[n].length <= max_words:
            chosen, words, stems = [*chosen, n], words + quotes[n].length, stems | own
    return [quotes[n] for n in sorted(chosen)]
