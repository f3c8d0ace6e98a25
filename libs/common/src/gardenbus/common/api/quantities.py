"""Kubernetes quantities: `1500m`, `1k`, `1Ki`, `1e3`, as exact numbers."""

import re
from fractions import Fraction
from math import ceil, isfinite

QUANTITY_PATTERN = r"([+-]?(?:[0-9]++\.?+[0-9]*+|\.[0-9]++))(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?"
_QUANTITY = re.compile(QUANTITY_PATTERN)
_SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}
LONGEST_QUANTITY = 64
"""Characters of a quantity; a longer text is none."""


def parse_quantity(value: str | float) -> Fraction:
    """Parse a quantity to an exact number.

    Raises ValueError, with the value in the text, for anything else. Source: apimachinery's `resource.ParseQuantity`.
    """
    if isinstance(value, bool):
        raise ValueError(f"{value!r} is not a quantity")  # noqa: TRY004  one error for whatever is no quantity
    if isinstance(value, int | float):
        if not isfinite(value):
            raise ValueError(f"{value!r} is not a quantity")
        return Fraction(str(value))
    match = _QUANTITY.fullmatch(value) if len(value) <= LONGEST_QUANTITY else None
    if match is None:
        raise ValueError(
            f"{value[:LONGEST_QUANTITY]!r} is not a quantity: "
            "write a number with an optional suffix, as 10, 1500m, 1k or 1Ki"
        )
    number, suffix = match.groups()
    if suffix is None:
        return Fraction(number)
    if suffix in _SUFFIXES:
        return Fraction(number) * _SUFFIXES[suffix]
    return Fraction(number) * Fraction(10) ** int(suffix[1:])


def whole_count(value: str | float) -> int:
    """Number of whole things that fit below a quantity: `1500m` admits two, as usage 1 is below 1.5."""
    return ceil(parse_quantity(value))
