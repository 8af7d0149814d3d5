"""Text from outside, without what steers a terminal."""

_CONTROL_CHARACTERS = dict.fromkeys(
    [*range(9), *range(11, 32), *range(127, 160)]
)  # all control characters but tab and newline


def strip_control_characters(text: str) -> str:
    """The same without control characters."""
    return text.translate(_CONTROL_CHARACTERS)
