"""Text from outside, without what steers a terminal."""

_STEERING = dict.fromkeys([*range(9), *range(11, 32), *range(127, 160)])  # all control characters but tab and newline


def plain_text(text: str) -> str:
    """The same without control characters."""
    return text.translate(_STEERING)
