"""What the tools are called with and what they give back. The types are the JSON Schemas that clients are shown."""

from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import quote, unquote

import msgspec
from msgspec import Meta

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_CHARACTERS = 4000  # of a question: as many as in a chat
MAX_PASSAGES = 100  # of one search
MAX_DOCUMENTS = 1000  # that one reply names
SCHEME = "convagent://"
DOCUMENTS, PASSAGES = f"{SCHEME}documents/", f"{SCHEME}passages/"
ONLY = (
    "Keep to a part of the documents: a folder (`travel/`), a file, or a glob (`*.pdf`), in which * stands for "
    "folders, too. Empty: all of them."
)

Text = Annotated[str, Meta(min_length=1, max_length=MAX_CHARACTERS)]
Only = Annotated[str, Meta(max_length=MAX_CHARACTERS, description=ONLY)]


class SearchArguments(msgspec.Struct, forbid_unknown_fields=True):
    """What to search for."""

    query: Annotated[Text, Meta(description="What to look for: a question or words of it, in plain language.")]
    k: Annotated[int, Meta(ge=1, le=MAX_PASSAGES, description="How many passages, at most.")] = 10
    only: Only = ""
    wait: Annotated[
        bool,
        Meta(description="Wait for models and vectors, where otherwise one searches by words until they are there."),
    ] = False


class PassageArguments(msgspec.Struct, forbid_unknown_fields=True):
    """Which passage to read."""

    id: Annotated[Text, Meta(description="The id of a passage, as search_passages and ask give it.")]


class DocumentsArguments(msgspec.Struct, forbid_unknown_fields=True):
    """Which documents to list."""

    only: Only = ""


class AskArguments(msgspec.Struct, forbid_unknown_fields=True):
    """What to ask, and after which questions."""

    question: Annotated[
        Text, Meta(description='The question as it was asked. It may lean on earlier ones ("and how?").')
    ]
    conversation_id: Annotated[
        str, Meta(description="That of the answer before, to go on with its conversation. Left out, a new one begins.")
    ] = ""


class NoArguments(msgspec.Struct, forbid_unknown_fields=True):
    """Nothing."""


class Link(msgspec.Struct, frozen=True):
    """Where something can be read, as a resource."""

    uri: str
    name: str
    title: str = ""


class PassageText(msgspec.Struct, frozen=True):
    """A passage."""

    id: str
    text: str
    title: str
    url: str
    document: str
    uri: Annotated[str, Meta(description="Of the resource with this passage.")]

    @property
    def link(self) -> Link:
        return Link(self.uri, self.id, self.title)

    def describe(self) -> str:
        heading = f"[{self.id}] {self.title}" if self.title else f"[{self.id}]"
        return f"{heading}\n{self.text}"


class FoundPassage(msgspec.Struct, frozen=True):
    """A passage that was found."""

    rank: int
    score: Annotated[float, Meta(description="Higher is better, comparable within one search only.")]
    passage: PassageText


class SearchResult(msgspec.Struct, frozen=True):
    """The passages that were found, best first."""

    searched_by: Literal["words", "words and meaning"]
    passages: list[FoundPassage]
    note: Annotated[str, Meta(description="Why words alone, or not all documents, were searched; empty otherwise.")] = (
        ""
    )

    @property
    def links(self) -> list[Link]:
        return [found.passage.link for found in self.passages]

    def describe(self) -> str:
        shown = "\n\n".join(f"{found.rank}. {found.passage.describe()}" for found in self.passages)
        return _join_paragraphs(shown or "Nothing was found.", self.note)


class PassageResult(msgspec.Struct, frozen=True):
    """The passage."""

    passage: PassageText

    @property
    def links(self) -> list[Link]:
        return [self.passage.link]

    def describe(self) -> str:
        return self.passage.describe()


class ListedDocument(msgspec.Struct, frozen=True):
    """A document."""

    path: str
    title: str
    uri: Annotated[str, Meta(description="Of the resource with its text.")]


class DocumentsResult(msgspec.Struct, frozen=True):
    """The documents that there are."""

    total: int
    documents: Annotated[list[ListedDocument], Meta(description=f"The first {MAX_DOCUMENTS} of them.")]

    @property
    def links(self) -> list[Link]:
        return []

    def describe(self) -> str:
        named = [f"{each.path}  {each.title}".rstrip() for each in self.documents]
        rest = self.total - len(named)
        return "\n".join([f"{self.total} documents", *named, *([f"... and {rest} more"] if rest else [])])


class Citation(msgspec.Struct, frozen=True):
    """A source of an answer."""

    number: Annotated[int, Meta(description="As it stands in the answer: [1].")]
    id: str
    title: str
    url: str
    quotes: list[str]
    uri: str
    place: Annotated[str, Meta(description="The document, and where in it the quotes stand.")] = ""


class AskResult(msgspec.Struct, frozen=True):
    """An answer with its sources."""

    answer: Annotated[str, Meta(description="With the numbers of its sources, [1].")]
    conversation_id: Annotated[str, Meta(description="To be given with the next question of this conversation.")]
    searched_for: Annotated[str, Meta(description="The question, completed from the conversation.")]
    only: Annotated[str, Meta(description="What the conversation is kept to from here on; empty for all documents.")]
    knowing: Annotated[list[str], Meta(description="What of the statements about the person was taken into account.")]
    citations: list[Citation]
    note: Annotated[str, Meta(description="That not all documents are known yet; empty otherwise.")] = ""

    @property
    def links(self) -> list[Link]:
        return [Link(source.uri, f"[{source.number}] {source.id}", source.title) for source in self.citations]

    def describe(self) -> str:
        sources = "\n".join(f"[{source.number}] {source.place}  {source.title}".rstrip() for source in self.citations)
        return _join_paragraphs(self.answer, sources, self.note, f"conversation_id: {self.conversation_id}")


class AboutMeResult(msgspec.Struct, frozen=True):
    """What the person told about themselves."""

    statements: list[str]

    @property
    def links(self) -> list[Link]:
        return []

    def describe(self) -> str:
        return "\n".join(self.statements) or "Nothing is known about the person."


Result = SearchResult | PassageResult | DocumentsResult | AskResult | AboutMeResult


def _join_paragraphs(*paragraphs: str) -> str:
    return "\n\n".join(filter(None, paragraphs))


def to_schema(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON Schema of a type, with the type itself at its root, as the protocol wants it."""
    schema = msgspec.json.schema(kind)
    definitions: Mapping[str, Any] = schema["$defs"]
    others = {name: definition for name, definition in definitions.items() if name != kind.__name__}
    return {**definitions[kind.__name__], **({"$defs": others} if others else {})}


def to_document_uri(path: str) -> str:
    """The address of a document by its path below the folder."""
    return f"{DOCUMENTS}{quote(path)}"


def to_passage_uri(id: str) -> str:
    """The address of a passage by its id."""
    return f"{PASSAGES}{quote(id)}"


def parse_uri(uri: str, kind: str) -> str | None:
    """The path or id in an address of that kind (`DOCUMENTS`, `PASSAGES`); None in another."""
    return unquote(uri.removeprefix(kind)) if uri.startswith(kind) else None
