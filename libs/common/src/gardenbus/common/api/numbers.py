"""Numbers that arrive as text, in headers and annotations."""

from typing import Any

_MOST_DIGITS = 18
"""Digits of a number that fits into 64 bits whatever they are."""


def whole_number(text: Any, otherwise: int = 0) -> int:
    """The number that a text of at most 18 ASCII digits states; `otherwise` for anything else.

    `int` takes other digits too, and raises for a text of thousands of them.
    """
    if isinstance(text, str) and len(text) <= _MOST_DIGITS and text.isascii() and text.isdecimal():
        return int(text)
    return otherwise
