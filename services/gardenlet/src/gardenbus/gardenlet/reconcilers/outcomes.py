"""How a look at a shoot ended."""

from typing import NamedTuple


class Outcome(NamedTuple):
    """How a look at a shoot ended: `again_seconds` None means not before something is told."""

    name: str
    again_seconds: float | None = None
    reason: str = ""
