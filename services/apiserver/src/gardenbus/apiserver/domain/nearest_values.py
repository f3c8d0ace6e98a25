"""Valid values that are nearest to an invalid one: names by their edit distance, versions by their numbers."""

import re
from collections.abc import Collection, Sequence

from Levenshtein import distance as edit_distance

NAMED = 3
"""Values that are proposed at most."""

_LONGEST = 64
"""Characters of a name that are compared."""

_NUMBERS = re.compile(r"\d{1,9}")


def nearest_names(given: str, valid: Collection[str]) -> Sequence[str]:
    """The names that differ from what is given in the fewest characters (inserted, removed, replaced)."""
    return sorted(valid, key=lambda name: (edit_distance(given[:_LONGEST], name[:_LONGEST]), name))[:NAMED]


def nearest_versions(given: str, valid: Collection[str]) -> Sequence[str]:
    """The versions that are nearest to what is given: in the major number first, then in the next, and so on."""
    wanted = _numbers(given)

    def distance(version: str) -> tuple[tuple[int, ...], str]:
        numbers = _numbers(version)
        length = max(len(wanted), len(numbers))
        pairs = zip(_padded(wanted, length), _padded(numbers, length), strict=True)
        return tuple(abs(one - other) for one, other in pairs), version

    return sorted(valid, key=distance)[:NAMED]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in _NUMBERS.findall(version[:_LONGEST]))


def _padded(numbers: Sequence[int], length: int) -> Sequence[int]:
    return (*numbers, *(0 for _ in range(length - len(numbers))))
