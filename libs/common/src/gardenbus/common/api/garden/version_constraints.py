"""Constraints on versions, as `>= 1.26, < 1.30 || 1.32.x`: images of a profile say so which kubelets they run with.

Commas and spaces join comparisons that must all hold, `||` alternatives. Understood are =, !=, <, <=, >, >=, ~ (of the
same minor) and ^ (of the same major); a number that is left out, or is x or *, may be any.
Source: github.com/Masterminds/semver.
"""

import re
from collections.abc import Callable, Mapping

from gardenbus.common.api.garden.expirable_versions import Numbers

_NUMBER = r"[0-9xX*]{1,9}"
_COMPARISON = re.compile(
    rf"(?P<operator>!=|<=|>=|=|<|>|~|\^)?\s*v?(?P<version>{_NUMBER}(?:\.{_NUMBER}){{0,2}})(?![0-9xX*.])[,\s]*"
)

LONGEST_CONSTRAINT = 1024
"""Characters of a constraint; a longer one cannot be read. It is read again for each pool of each shoot."""

_Holds = Callable[[Numbers, Numbers], bool]

_OPERATORS: Mapping[str, _Holds] = {
    "=": lambda version, given: version[: len(given)] == given,
    "!=": lambda version, given: version[: len(given)] != given,
    "<": lambda version, given: version[: len(given)] < given,
    "<=": lambda version, given: version[: len(given)] <= given,
    ">": lambda version, given: version[: len(given)] > given,
    ">=": lambda version, given: version[: len(given)] >= given,
    "~": lambda version, given: version[: min(len(given), 2)] == given[:2] and version[: len(given)] >= given,
    "^": lambda version, given: version[:1] == given[:1] and version[: len(given)] >= given,
}


def satisfies(version: Numbers, constraint: str) -> bool:
    """True when a version is within a constraint; one that cannot be read allows nothing."""
    if len(constraint) > LONGEST_CONSTRAINT:
        return False
    return any(_all_hold(version, alternative.strip()) for alternative in constraint.split("||"))


def is_constraint(text: str) -> bool:
    """True for a constraint that can be read."""
    return len(text) <= LONGEST_CONSTRAINT and all(
        alternative.strip() and not _COMPARISON.sub("", alternative.strip()) for alternative in text.split("||")
    )


def _all_hold(version: Numbers, comparisons: str) -> bool:
    position = 0
    while position < len(comparisons):
        found = _COMPARISON.match(comparisons, position)
        if found is None:
            return False
        if not _OPERATORS[found["operator"] or "="](version, _given(found["version"])):
            return False
        position = found.end()
    return bool(comparisons)


def _given(text: str) -> Numbers:
    """The numbers up to the first that may be any."""
    numbers: list[int] = []
    for part in text.split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)
