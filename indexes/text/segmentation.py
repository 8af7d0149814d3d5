"""Cutting documents into passages as the track does: windows of ten sentences that overlap by five.

Source: the passage segmentation of TREC iKAT (its guidelines, and `spacy_passage_chunker.py` of the organisers'
repository): the first 10,000 characters, ten sentences, a stride of five. Sentences are found by spaCy's trained
`senter` (`python -m spacy download en_core_web_sm`; it is not on PyPI), or by a rule.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from indexes.text.sentences import split_sentences
from schemas.errors import MissingError, UsageError
from schemas.records import Passage

MAX_CHARACTERS, WINDOW_SENTENCES, STRIDE = 10_000, 10, 5
SentenceSplitter = Callable[[str], Sequence[str]]  # a text's sentences


@dataclass(frozen=True, slots=True)
class Segmentation:
    """How documents are cut: what finds their sentences, and its name."""

    split: SentenceSplitter
    name: str

    def __str__(self) -> str:
        """What an index says of it."""
        return f"windows of {WINDOW_SENTENCES} sentences, a stride of {STRIDE}; sentences by {self.name}"


def cut_into_windows(document: Passage, split: SentenceSplitter) -> Iterator[Passage]:
    """The passages of a document: `id:0`, `id:1`, ... A short document is one passage."""
    sentences = split(document.text[:MAX_CHARACTERS])
    for number, start in enumerate(range(0, max(1, len(sentences) - STRIDE), STRIDE)):
        text = " ".join(sentences[start : start + WINDOW_SENTENCES])
        yield Passage(f"{document.id}:{number}", text, document.title, document.url)


Sentences = Literal["auto", "senter", "rule"]
PACKAGE = "en_core_web_sm"
UNUSED = (
    "parser",
    "tagger",
    "ner",
    "attribute_ruler",
    "lemmatizer",
    "tok2vec",
)  # components that the script leaves out


def choose_segmentation(sentences: Sentences = "auto", *, segment: bool = True) -> Segmentation | None:
    """The segmentation by `senter` or by rule (`auto`: `senter` where it is installed); None without `segment`.

    Raises `MissingError` where `senter` is asked for and not installed, or cannot be loaded.
    """
    if not segment:
        if sentences != "auto":
            raise UsageError("--sentences says how --segment cuts documents", remedy="Give --segment too.")
        return None
    from spacy.util import is_package

    if sentences == "rule" or (sentences == "auto" and not is_package(PACKAGE)):
        return Segmentation(split_sentences, "a rule (spaCy's sentencizer)")
    pipeline = _load_pipeline()
    name = f"the senter of {PACKAGE} {pipeline.meta['version']}"
    return Segmentation(lambda text: _split_by_senter(text, pipeline), name)


def _load_pipeline() -> Any:
    import spacy

    try:
        pipeline = spacy.load(PACKAGE, exclude=UNUSED)
        pipeline.enable_pipe("senter")
    except (OSError, ValueError, ImportError) as error:
        installed = spacy.util.is_package(PACKAGE)
        what = f"{PACKAGE} cannot be loaded ({error})" if installed else f"{PACKAGE} is not installed"
        remedy = f"Install it by `python -m spacy download {PACKAGE}`, or give `--sentences rule`."
        raise MissingError(f"{what}, whose senter finds sentences", remedy=remedy) from error
    return pipeline


def _split_by_senter(text: str, pipeline: Any) -> Sequence[str]:
    """The sentences as the script has them: line breaks become spaces, and no other white space is changed."""
    with pipeline.memory_zone():  # else what it knows of words grows with every text
        return [span.text for span in pipeline(text.replace("\r", " ").replace("\n", " ")).sents]
