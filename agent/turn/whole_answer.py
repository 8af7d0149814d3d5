"""Answers that need whole documents: what all rows of a table say, and summaries."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import PurePath

from agent.turn.attribution import supporting_ids
from agent.turn.clarification import ask_which
from agent.turn.quotes import Quote, find_quotes
from agent.turn.tables.answer import compute_over_tables
from agent.turn.writing.checked_answer import Writer
from agent.turn.writing.drafts import CANNOT, find_request, write_draft
from agent.turn.writing.reply import is_writer, write_response
from indexes.documents.collection import ENDINGS, WholeDocuments, has_all_words, stem_path
from indexes.documents.tables.table import find_tables
from indexes.ranking.vectors import Embedder
from indexes.text.analysis import load_stop_words, word_set
from indexes.text.response_length import MAX_TOKENS, leading_within_limit
from indexes.text.units import split_units
from schemas.records import Hit, Passage, Plan, Query, Response, Sentence, WholeAnswer
from schemas.tuning import AnswerTuning

NEAR_HITS = 8  # a table with a row among them is asked
REQUEST_PASSAGES = 4  # that a model reads for what it is asked to write
SUMMARY_WORDS = 120  # at most; more than of another answer
MAX_EMBEDDED = 300  # sentences of a document, or documents; those of a longer one are compared by their words
MIN_WORDS = 5  # of a sentence that may stand in a summary
SHORT_WORDS = 8  # a shorter one seldom says much alone
SHORT, DOUBTFUL, FIGURE = -0.15, -0.1, 0.1  # what is added to the score of such a sentence, and of one with a number
HEADERS = ("from: ", "to: ", "date: ", "subject: ")  # of a message, whose title says it, too
SHOWN_ROWS = 3  # of a document that is a table
MAX_ASKED = 4  # documents of which it is asked which is meant
SUMMARY_LENGTH = "in four to six sentences"  # as a model is asked for it
_SUMMARISE = (
    r"summari[sz]e|sum up|give me (?:a|an|the) (?:short |brief )?(?:summary|overview|outline) of|(?:a |the )?"
    r"(?:short |brief )?(?:summary|overview) of|fass\w* (?=.* zusammen)|zusammenfassung (?:von|des|der)"
)
_ASKS = re.compile(
    rf"(?:please |can you |could you |would you )*(?:(?P<of_document>{_SUMMARISE})|outline"
    r"|what are the (?:main|key) (?:points|facts|messages) (?:of|in))\s+(?P<subject>.+?)(?: \((?P<chosen>[^()]+)\))?"
    r"(?:,? (?:for me|please|briefly|in short|zusammen|in (?P<length>\w+|a few) (?:sentences?|points?|lines?)))*",
    re.IGNORECASE,
)
_SAYS = re.compile(
    r"^what (?:(?:do|does|did) (?P<said>.+?) (?:say|contain|write)|(?:is|was) (?P<about>.+?) about)$", re.IGNORECASE
)
_NUMBERS = ("", "one", "two", "three", "four", "five", "six", "seven", "eight")
NEAR_NAME = 0.5  # the cosine from which a document may be what is meant: the "rental contract" is the lease;
NEAR, NEAR_OF_KIND, AHEAD = 0.35, 0.25, 0.1  # a lower one is enough where no other, or no other mail, comes so near
_NO_SUBJECT = word_set(
    "the a an my our your this that these file document documents paper text letter pdf der die das den dem des mein "
    "meine"
)
_FROM = re.compile(r"['’]s(?!\w)| (?:from|by|von)(?= )")  # whom it names
_KINDS = stem_path("note notes mail mails email message notiz notizen letter letters")  # seldom in names
_POINTS_BACK = re.compile(
    r"(?:it|this|that|them|these|those|all|everything|(?:your |the )?(?:last )?answer)", re.IGNORECASE
)


def summarise(
    utterance: str,
    documents: WholeDocuments,
    search: Callable[[Query], tuple[Hit, ...]],
    embedder: Embedder | None,
    tuning: AnswerTuning,
) -> WholeAnswer | None:
    """The summary of the document that is asked for; None where none is, or it is not sure which."""
    text = " ".join(utterance.split()).rstrip(" ?!.")
    says = _SAYS.fullmatch(text)
    asked = _ASKS.fullmatch(f"outline {says['said'] or says['about']}" if says else text)
    if asked is None or _POINTS_BACK.fullmatch(asked["subject"]):
        return None
    subject, chosen = asked["subject"], asked["chosen"]
    if subject.startswith("“") and subject.endswith("”"):
        heading = subject[1:-1]
        if section := _find_section(heading, chosen or "", documents, search):
            return _quote_central(section, embedder, tuning, heading=heading)
    by_contents = (lambda _query: ()) if says else search  # "what does the sign say" names no document
    names = [chosen] if chosen in documents.names else find_documents(subject, documents, by_contents)
    names = names or find_by_meaning(subject, documents, embedder)
    if len(names) != 1:
        is_named = asked["of_document"] and stem_path(_keep_content_words(subject.casefold())) - _KINDS
        none = (
            f"I have no document that is called “{subject}” or speaks of all of that, so there is nothing to summarise."
        )
        said = WholeAnswer(Response((Sentence(none, ()),)), ()) if is_named else None
        return _ask_which(names, documents) if names else said
    passages = documents.read(names[0])
    return _describe_table(names[0], passages) or _quote_central(
        passages, embedder, tuning, _read_length(asked["length"])
    )


def _find_section(
    heading: str, chosen: str, documents: WholeDocuments, search: Callable[[Query], tuple[Hit, ...]]
) -> tuple[Passage, ...]:
    """The document with such a heading: the one that is named, else the one found first; () where none has it."""
    found = () if chosen in documents.names else documents.index.read([hit.id for hit in search(Query(heading))])
    having = (passage.document for passage in found if heading in list_sections([passage]))
    name = chosen if chosen in documents.names else next(having, "")
    return documents.read(name) if name else ()


def list_sections(passages: Sequence[Passage], said: str | None = None) -> list[str]:
    """The headings in some passages below which something stands, or something of what was said; in order."""
    units = (unit for passage in passages for unit in split_units(passage) if unit.is_statement)
    units = (unit for unit in units if said is None or unit.text in said)
    return list(dict.fromkeys(unit.headings[-1].rstrip(":") for unit in units if len(unit.headings) > 1))


def find_documents(subject: str, documents: WholeDocuments, search: Callable[[Query], tuple[Hit, ...]]) -> list[str]:
    """The documents that are meant as well as each other: by file, path and title, signature, then contents; none: [].

    "The notes about the boat" are those with all these words; where there are none, whatever has "boat".
    """
    plain = subject.strip(" ,'\"“”‘’`").casefold()
    exact = [name for name in documents.names if plain in (name.casefold(), name.casefold().rpartition("/")[2])]
    words = _keep_content_words(_FROM.sub("", plain))
    wanted = stem_path(words)
    if exact or not wanted:
        return exact
    for stems in (wanted, wanted - _KINDS):
        titled = documents.find_named(stems)
        named = [name for name in titled if stems <= stem_path(name.rpartition("/")[2])]
        if titled:
            return named or titled
    about = [word for word in words.split() if not stem_path(word) & _KINDS]
    if not about:
        return []
    is_from = _FROM.search(plain) and stem_path(plain) & _KINDS and len(documents.names) <= MAX_EMBEDDED
    if is_from and (signed := documents.find_signed(wanted - _KINDS)):
        return signed
    passages = documents.index.read([hit.id for hit in search(Query(" ".join(about)))])
    fitting = [one for one in passages if has_all_words(f"{one.title} {one.text}", " ".join(about), one.language)]
    counts = Counter(passage.document for passage in fitting)
    return [name for name, count in counts.items() if count == max(counts.values())]


def find_by_meaning(subject: str, documents: WholeDocuments, embedder: Embedder | None) -> list[str]:
    """The document that is nearest to what is meant by its name, or by how it begins and ends; [] where none is near.

    "The landlord's mail" is a mail where there is one.
    """
    wanted = stem_path(subject.casefold())
    endings = next((ends for word, ends in ENDINGS.items() if any(ends) and stem_path(word) & wanted), ())
    of_kind = [name for name in documents.names if endings and name.casefold().endswith(endings)]
    names = of_kind or documents.names
    if len(of_kind) == 1 and not stem_path(_keep_content_words(subject.casefold())) - _KINDS:  # "the mail"
        return of_kind
    if embedder is None or not 0 < len(names) <= MAX_EMBEDDED:
        return []
    named = [re.sub(r"[/._-]", " ", f"{PurePath(name).stem} {documents.read_title(name)}") for name in names]
    told = [f"{name} {documents.describe(path)}" for name, path in zip(named, names, strict=True)]
    near = embedder.embed([*named, *told]) @ embedder.embed([subject])[0] / embedder.spread
    cosines = near.reshape(2, -1).max(axis=0)
    best, *others = sorted(range(len(names)), key=lambda n: -cosines[n])
    ahead = cosines[best] - max((cosines[n] for n in others), default=0)
    is_near = cosines[best] >= (NEAR_OF_KIND if of_kind else NEAR) and ahead >= AHEAD
    return [names[best]] if is_near or cosines[best] >= NEAR_NAME else []


def _read_length(asked: str | None) -> int | None:
    """How many sentences are asked for; None where that is not said."""
    said = (asked or "").lower()
    return int(said) if said.isdecimal() else _NUMBERS.index(said) if said in _NUMBERS[1:] else None


def _ask_which(names: Sequence[str], documents: WholeDocuments) -> WholeAnswer:
    """Which of several documents is meant, whose reply `complete_utterance` then understands."""
    shown = names[:MAX_ASKED]
    passages = tuple(documents.read(name)[0] for name in shown)
    return WholeAnswer(ask_which(shown, [passage.id for passage in passages]), passages)


def _keep_content_words(subject: str) -> str:
    """The words of what names a document: not "this document"."""
    left_out = _NO_SUBJECT | load_stop_words()
    return " ".join(word for word in subject.split() if word not in left_out)


def _describe_table(name: str, passages: Sequence[Passage]) -> WholeAnswer | None:
    """Of a document that is one table, how many rows and which columns it has, and the first rows."""
    tables = find_tables(name, passages)
    if len(tables) != 1 or tables[0].is_doubtful or len({row.passage.id for row in tables[0].rows}) < len(passages) - 1:
        return None
    rows, columns = tables[0].rows, ", ".join(column.name for column in tables[0].columns)
    opening = Sentence(f"{name} is a table of {len(rows)} rows: {columns}.", ())
    shown = rows[:SHOWN_ROWS]
    sentences = (opening, *(Sentence(row.text, (row.passage.id,)) for row in shown))
    return WholeAnswer(Response(sentences), tuple(dict.fromkeys(row.passage for row in shown)))


def _quote_central(
    passages: Sequence[Passage],
    embedder: Embedder | None,
    tuning: AnswerTuning,
    most: int | None = None,
    heading: str = "",
) -> WholeAnswer | None:
    """The most telling sentences of a document, or below a heading, at most so many, in their order."""
    found = [quote for quote in find_quotes(passages, tuning) if not _is_header(quote)]
    below = [quote for quote in found if not heading or f": {quote.heading.rstrip(':')}".endswith(f": {heading}")]
    quotes = [quote for quote in below if len(quote.lead.split()) >= MIN_WORDS]
    if not quotes:
        return None
    chosen = _choose(quotes, _score(quotes, embedder), tuning.max_redundancy, most)
    texts = list(dict.fromkeys(text for quote in chosen for text in quote.texts))
    supported = [(text, supporting_ids(text, passages)) for text in leading_within_limit(texts, MAX_TOKENS)]
    sentences = tuple(Sentence(text, ids[:1]) for text, ids in supported if ids)
    used = {id for sentence in sentences for id in sentence.passage_ids}
    cited = tuple(passage for passage in passages if passage.id in used)
    return WholeAnswer(Response(sentences), cited, is_summary=True)


def _is_header(quote: Quote) -> bool:
    """Whether it is the row of a message that its title says, too."""
    return "T" in quote.passage.date and quote.lead.startswith(HEADERS)


def _score(quotes: Sequence[Quote], embedder: Embedder | None) -> list[float]:
    """How much each quote tells: how near it is to all, and whether it says much alone."""
    if embedder and len(quotes) <= MAX_EMBEDDED:
        vectors = embedder.embed([quote.headed for quote in quotes])
        likeness = [float(cosine) for cosine in vectors @ vectors.mean(axis=0)]
    else:  # of its words, the share of the quotes that have them
        stems = [quote.headed_stems() for quote in quotes]
        counts = Counter(stem for own in stems for stem in own)
        likeness = [sum(counts[stem] for stem in own) / len(quotes) / max(1, len(own)) for own in stems]
    return [
        near
        + SHORT * (quote.length < SHORT_WORDS)
        + DOUBTFUL * quote.doubtful
        + FIGURE * any(letter.isdigit() for letter in quote.lead)
        for quote, near in zip(quotes, likeness, strict=True)
    ]


def _choose(quotes: Sequence[Quote], scores: Sequence[float], max_redundancy: float, most: int | None) -> list[Quote]:
    """The best of each section, then what is left, as many as have room; in order. Of a few, the best of all."""
    best_first = sorted(range(len(quotes)), key=lambda n: -scores[n])
    sizes = Counter(quote.heading for quote in quotes)
    leading = {quotes[n].heading: n for n in reversed(best_first)}  # the best of each section
    by_size = sorted(leading.values(), key=lambda n: -sizes[quotes[n].heading])
    chosen, words, stems = list[int](), 0, frozenset[str]()
    for n in dict.fromkeys((*(by_size if most is None else ()), *best_first)):
        own = quotes[n].stems()
        is_new = len(own & stems) <= max_redundancy * max(1, len(own))
        if is_new and words + quotes[n].length <= SUMMARY_WORDS and len(chosen) != most:
            chosen, words, stems = [*chosen, n], words + quotes[n].length, stems | own
    return [quotes[n] for n in sorted(chosen)]


def answer_from_whole_documents(
    query: Query,
    hits: Sequence[Hit],
    documents: WholeDocuments,
    search: Callable[[Query], tuple[Hit, ...]],
    embedder: Embedder | None,
    tuning: AnswerTuning,
) -> WholeAnswer | None:
    """What a table as a whole says, a summary, or what a model is to make of documents; None of any other question."""
    near = documents.index.read([hit.id for hit in hits[:NEAR_HITS]])
    if near and (subject := find_request(query.utterance)) is not None:
        return _find_material(subject, near, documents, embedder)
    computed = compute_over_tables(query.standalone, near, documents, embedder)
    return computed or summarise(query.utterance, documents, search, embedder, tuning)


def _find_material(
    subject: str, near: tuple[Passage, ...], documents: WholeDocuments, embedder: Embedder | None
) -> WholeAnswer:
    """The beginning of the document that a request names; where it names none, what was found."""
    is_named = subject and not _POINTS_BACK.fullmatch(subject)
    named = find_documents(subject, documents, lambda _query: ()) if is_named else []
    named = named or (find_by_meaning(subject, documents, embedder) if is_named else [])
    passages = documents.read(named[0]) if len(named) == 1 else near
    return WholeAnswer(Response((Sentence(CANNOT, ()),)), passages[:REQUEST_PASSAGES], is_request=True)


def write_whole_answer(whole: WholeAnswer, query: Query, writer: Writer, plan: Plan) -> WholeAnswer:
    """What a model that writes makes of it; as it is where none does. Raises `ModelError` where it fails."""
    if not (whole.is_summary or whole.is_request) or not is_writer(writer, plan):
        return whole
    if whole.is_request:
        return replace(whole, response=write_draft(query, whole.passages, writer, plan))
    asked = Query(f"{query.utterance} ({SUMMARY_LENGTH})")
    response = write_response(asked, (), whole.response, whole.passages, writer, None, plan)
    passages = tuple(passage for passage in whole.passages if passage.id in response.used)
    return replace(whole, response=response, passages=passages)
