"""Findings of checks: state, observation and suggestion. Pure."""

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

FindingState = Literal["ok", "warning", "failed", "skipped"]

_WORST_FIRST: tuple[FindingState, ...] = ("failed", "warning", "ok", "skipped")


class DiagnosticFinding(NamedTuple):
    """One finding. `suggestion` is what to do: a command where there is one, "" where all is well."""

    check: str
    state: FindingState
    found: str
    suggestion: str = ""

    @property
    def row(self) -> Mapping[str, str]:
        """Row for JSON and YAML output."""
        return {"check": self.check, "state": self.state, "found": self.found, "remedy": self.suggestion}


def worst(findings: Iterable[DiagnosticFinding]) -> FindingState:
    """The worst state among them."""
    states = {finding.state for finding in findings}
    for state in _WORST_FIRST:
        if state in states:
            return state
    return "ok"


def graded(value: float, *, warning: float, failed: float) -> FindingState:
    """A state by how large something is."""
    return "failed" if value >= failed else "warning" if value >= warning else "ok"


def some_of(names: Iterable[str], most: int = 5) -> str:
    """`a, b and 3 more`."""
    listed = list(names)
    shown = ", ".join(listed[:most])
    return shown if len(listed) <= most else f"{shown} and {len(listed) - most} more"
