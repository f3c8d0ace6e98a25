"""Result of a reconciliation of a shoot."""

from typing import NamedTuple


class ShootResult(NamedTuple):
    """Result with its name and reason. `requeue_after_seconds` None: not before a change."""

    name: str
    requeue_after_seconds: float | None = None
    reason: str = ""
