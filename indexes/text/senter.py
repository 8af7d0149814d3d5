"""What finds the sentences of documents that are cut as iKAT cuts them: spaCy's trained `senter`, or a rule without it.

The track's script uses the `senter` of the package `en_core_web_sm`. It is not on PyPI: `python -m spacy download
en_core_web_sm` installs it.
"""

from collections.abc import Sequence
from typing import Any, Literal

from indexes.text.segmentation import Segmentation
from indexes.text.sentences import split_sentences
from schemas.errors import MissingError, UsageError

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
