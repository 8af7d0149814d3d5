"""Questions of a table that go on with the one before: "How much did the repairs cost?", "And at Bike Barn?"."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from agent.turn.conclusions.tables.matching import Item, Matched, TableWords, list_words, match_words
from agent.turn.conclusions.tables.question import TableQuestion, read_table_question
from agent.turn.conclusions.tables.rows import list_tables
from agent.turn.spans.leaning import find_other
from indexes.documents.whole_documents import WholeDocuments


def continue_question(utterance: str, earlier: Sequence[str], documents: WholeDocuments) -> TableQuestion | None:
    """The question before with another value or period; None where it is none of a table, or of several."""
    other = find_other(utterance)
    if not other or not earlier:
        return None
    before = read_table_question(earlier[-1]) or continue_question(earlier[-1], earlier[:-1], documents)
    if before is None:
        return None
    tables = map(TableWords, list_tables(documents))
    found = {rest for words_of in tables if (rest := _exchange(before, other, words_of))}
    return replace(before, rest=found.pop()) if len(found) == 1 else None


def _exchange(question: TableQuestion, other: str, words_of: TableWords) -> str:
    """The words of a question with other values or another period; empty where a table does not have them all."""
    before, _ = match_words(list_words(question.rest), words_of, question.language)
    after, _ = match_words(list_words(other), words_of, question.language)
    if before is None or after is None or not _is_exchangeable(after):
        return ""
    kept = [words for item, words in _list_items(before) if not any(_excludes(new, item) for new in after.items)]
    return " ".join(word for words in (*kept, after.words) for word in words)


def _is_exchangeable(matched: Matched) -> bool:
    kinds = {item.kind for item in matched.items} - {"neutral"}
    return bool(kinds) and kinds <= {"value", "period"}


def _excludes(new: Item, old: Item) -> bool:
    """Whether a row cannot be asked for by both: two values of a column, two periods."""
    if new.kind != old.kind:
        return False
    return new.kind == "period" or (new.kind == "value" and not set(new.columns).isdisjoint(old.columns))


def _list_items(matched: Matched) -> Iterator[tuple[Item, tuple[str, ...]]]:
    """Each item with its words."""
    at = 0
    for item in matched.items:
        yield item, matched.words[at : at + item.size]
        at += item.size
