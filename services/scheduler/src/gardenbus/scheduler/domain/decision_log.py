"""Fields of the one line that is logged for each decision: class, seed, candidates, rejections by filter."""

from typing import Any

from gardenbus.scheduling.equivalence_classes import SchedulingRequest, equivalence_class
from gardenbus.scheduling.results import Assignment, Unschedulable

MAX_REMEMBERED = 10_000
"""Names of classes that are kept; then all are dropped and worked out again."""


class DecisionLogFields:
    """Builds the fields. The parts that shoots of one class share are worked out once."""

    def __init__(self) -> None:
        self._classes: dict[SchedulingRequest, str] = {}

    def assignment(self, request: SchedulingRequest, assignment: Assignment) -> dict[str, Any]:
        """The fields of an assignment. `rejections` are those that all shoots of the class share."""
        return {
            "class": self.class_of(request),
            "seed": assignment.seed,
            "strategy": assignment.strategy,
            "distance": assignment.distance,
            "usage": assignment.usage,
            "candidates": assignment.considered,
            "eligible": assignment.eligible,
            "rejections": assignment.summary.rejections,
            **({"total": assignment.total} if assignment.scores else {}),
        }

    def unschedulable(self, request: SchedulingRequest, result: Unschedulable, candidates: int) -> dict[str, Any]:
        """The fields of an unschedulable shoot; `candidates` counts all seeds."""
        return {
            "class": self.class_of(request),
            "rule": result.rule,
            "reason": result.message,
            "candidates": candidates,
            "rejections": dict(result.rejected),
        }

    def class_of(self, request: SchedulingRequest) -> str:
        """The name of the class, the same as the store keeps with unschedulable shoots."""
        cached = self._classes.get(request)
        if cached is None:
            if len(self._classes) >= MAX_REMEMBERED:
                self._classes.clear()
            cached = self._classes[request] = equivalence_class(request)
        return cached
