"""Numbers that arrive as text, in headers and annotations."""

import re
from typing import Any

_MOST_DIGITS = 18
"""Digits of a number that fits into 64 bits whatever they are."""

_DECIMAL = re.compile(r"(-?)([0-9]{1,15})(?:\.([0-9]{1,3}))?")


def whole_number(text: Any, otherwise: int = 0) -> int:
    """The number that a text of at most 18 ASCII digits states; `otherwise` for anything else.

    `int` takes other digits too, and raises for a text of thousands of them.
    """
    if isinstance(text, str) and len(text) <= _MOST_DIGITS and text.isascii() and text.isdecimal():
        return int(text)
    return otherwise


def thousandths(text: str) -> int | None:
    """A decimal of at most three places, in thousandths; None for any other text."""
    found = _DECIMAL.fullmatch(text)
    if found is None:
        return None
    sign, whole, places = found.groups()
    value = int(whole) * 1000 + int((places or "").ljust(3, "0"))
    return -value if sign else value
