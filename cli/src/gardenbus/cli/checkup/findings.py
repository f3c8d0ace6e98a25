"""What an examination finds: whether it is well, what was seen, and what to do. Pure."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

State = Literal["ok", "warning", "failed", "skipped"]

_WORST_FIRST: tuple[State, ...] = ("failed", "warning", "ok", "skipped")


class Finding(NamedTuple):
    """One thing that was looked at. `remedy` is what to do: a command where there is one, "" where all is well."""

    check: str
    state: State
    found: str
    remedy: str = ""


def worst(findings: Iterable[Finding]) -> State:
    """The worst state among them."""
    states = {finding.state for finding in findings}
    for state in _WORST_FIRST:
        if state in states:
            return state
    return "ok"


def graded(value: float, *, warning: float, failed: float) -> State:
    """A state by how large something is."""
    return "failed" if value >= failed else "warning" if value >= warning else "ok"


def some_of(names: Iterable[str], most: int = 5) -> str:
    """`a, b and 3 more`."""
    listed = list(names)
    shown = ", ".join(listed[:most])
    return shown if len(listed) <= most else f"{shown} and {len(listed) - most} more"
