"""Topics files of any edition: detected, and read leniently."""

from pathlib import Path
from typing import Any, get_args

import msgspec

from agent.tracks.edition import Edition
from agent.tracks.lenient_reading import Oddities, convert_to_shape, decode_spelling, report_oddities
from agent.tracks.registry import load_edition, load_editions
from indexes.storage.files import read_utf8
from schemas.errors import InvalidInputError
from schemas.records import Topics
from schemas.wire import Data


def read_topics(path: Path) -> Topics:
    """Topics and labels of a file, whose edition is detected. What was odd about it is logged.

    Raises `InvalidInputError` with every problem of shape, each with its JSON path.
    """
    data = read_utf8(path)
    with report_oddities(path) as oddities:
        return parse_topics(data, oddities)


def parse_topics(data: Data, oddities: Oddities) -> Topics:
    """The same of the contents of a file."""
    try:
        raw = decode_spelling(data, Any, "$", oddities)
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"is not JSON ({error})", remedy="Is it a topics file?") from error
    form = _find_edition(raw)
    if not raw:
        raise InvalidInputError("holds no topics")
    return form.read_topics(convert_to_shape(raw, form.topics_shape, f"{form.name} topics file", oddities))


def _find_edition(raw: Any) -> Edition:
    if detected := detect_edition(raw):
        return load_edition(detected)
    expected = []
    for edition in load_editions():
        fields = [field for topic in get_args(edition.topics_shape) for field in msgspec.structs.fields(topic)]
        expected.append(f"{', '.join(f'`{f.encode_name}`' for f in fields if f.required)} ({edition.name})")
    remedy = f"Expected a list of objects with {', or '.join(expected)}."
    raise InvalidInputError("is of no edition that can be recognised", remedy=remedy)


def detect_edition(raw: Any) -> str | None:
    """The name of the edition that the first topic of a list of which that can be said looks like."""
    topics = [topic for topic in raw if isinstance(topic, dict)] if isinstance(raw, list) else []
    return next((edition.name for topic in topics for edition in load_editions() if edition.detects_topic(topic)), None)
