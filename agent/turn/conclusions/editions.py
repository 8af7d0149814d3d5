"""Which of several documents of a kind is the newest or the oldest: "Which price list is newer?".

Concluded only where every one of them has one date, with as many parts, in its path or title.
"""

import re
from collections.abc import Sequence

from agent.turn.attribution import supporting_ids
from agent.turn.quotes import find_quotes
from indexes.documents.whole_documents import WholeDocuments
from indexes.text.analysis import extract_stems
from indexes.text.dates import read_date
from schemas.records import Passage, Response, Sentence, WholeAnswer
from schemas.tuning import AnswerTuning

MAX_SHOWN = 3  # documents that a sentence is quoted of
_NEW, _OLD = r"newer|newest|latest|(?:more|most) recent", r"older|oldest|earlier|earliest"
_ASKS = re.compile(
    rf"(?:which|what)(?: (?:one )?of)?(?: (?:the|my|our|two|both))* (?P<before>.+?) (?:is|was|are|were)(?: the)? "
    rf"(?P<first>{_NEW}|{_OLD})(?: one)?|(?:which|what) (?:is|was|are|were) (?:the|my|our) "
    rf"(?P<second>{_NEW}|{_OLD}) (?P<after>.+)",
    re.IGNORECASE,
)


def find_newest(utterance: str, documents: WholeDocuments, tuning: AnswerTuning) -> WholeAnswer | None:
    """The newest or the oldest document of a kind, with a sentence of each; None where that is not sure."""
    asked = _ASKS.fullmatch(" ".join(utterance.split()).rstrip(" ?!."))
    if asked is None:
        return None
    wanted = set(extract_stems(asked["before"] or asked["after"]))
    of_kind = documents.find_named(wanted)
    dates = {name: date for name in of_kind if (date := read_date(f"{name} {documents.read_title(name)}"))}
    is_sure = 1 < len(of_kind) == len(dates) == len(set(dates.values())) and len({len(d) for d in dates.values()}) == 1
    if not is_sure:
        return None
    is_new = bool(re.fullmatch(_NEW, asked["first"] or asked["second"], re.IGNORECASE))
    return _show(sorted(dates, key=dates.__getitem__, reverse=is_new), documents, tuning)


def _show(ordered: Sequence[str], documents: WholeDocuments, tuning: AnswerTuning) -> WholeAnswer | None:
    """The first of the documents, and a sentence of each, which says the year where one does."""
    sentences, passages = list[Sentence](), list[Passage]()
    for name in ordered[:MAX_SHOWN]:
        held = documents.read(name)
        if sentence := _quote(name, held, tuning):
            sentences.append(sentence)
            passages += [passage for passage in held if passage.id in sentence.passage_ids]
    return WholeAnswer(Response(tuple(sentences), ordered[0]), tuple(passages)) if sentences else None


def _quote(name: str, passages: Sequence[Passage], tuning: AnswerTuning) -> Sentence | None:
    quotes = find_quotes(passages, tuning)
    year = read_date(f"{name} {passages[0].title}")[:4]
    best = next((quote for quote in quotes if year in quote.lead), quotes[0] if quotes else None)
    ids = supporting_ids(best.lead, passages) if best else ()
    return Sentence(best.lead, ids[:1]) if best and ids else None
