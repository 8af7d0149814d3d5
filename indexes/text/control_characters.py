"""Removing control characters, which could steer a terminal, from text of unknown origin."""

_CONTROL_CHARACTERS = dict.fromkeys([*range(9), *range(11, 32), *range(127, 160)])  # all but tab and newline


def strip_control_characters(text: str) -> str:
    """The text without control characters."""
    return text.translate(_CONTROL_CHARACTERS)
