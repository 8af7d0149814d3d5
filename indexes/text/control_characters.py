"""Removing what could steer a terminal, or the order in which a text is shown, from text of unknown origin."""

_CONTROL_CHARACTERS = dict.fromkeys([*range(9), *range(11, 32), *range(127, 160)])  # all but tab and newline

# Embeddings, overrides, isolates and marks of direction (Unicode Standard Annex 9): what follows them is shown in
# another order than it has.
_DIRECTIONS = dict.fromkeys([0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])


def strip_control_characters(text: str) -> str:
    """The text without control characters."""
    return text.translate(_CONTROL_CHARACTERS)


def strip_directions(text: str) -> str:
    """The text without characters that turn the direction of writing. Letters keep the direction of their script."""
    return text.translate(_DIRECTIONS)
