"""The one line that is logged for each decision: shoot, seed, class, candidates, rejections by rule, durations."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from gardenbus.scheduling.outcome import Placement, Refusal
from gardenbus.scheduling.request import SchedulingRequest, waiting_class

MOST_REMEMBERED = 10_000
"""Names of classes, and counts of refusals, that are kept; then all are forgotten and worked out again."""


class Teller:
    """Puts the members of lines together. What shoots of one class share is worked out once."""

    def __init__(self) -> None:
        self._classes: dict[SchedulingRequest, str] = {}
        self._counted: dict[int, tuple[Refusal, Mapping[str, int]]] = {}

    def placement(self, request: SchedulingRequest, placement: Placement) -> dict[str, Any]:
        """What is said of a placement. `rejections` are those of the rules that all shoots of the class share."""
        return {
            "class": self.class_of(request),
            "seed": placement.seed,
            "strategy": placement.strategy,
            "distance": placement.distance,
            "usage": placement.usage,
            "candidates": placement.considered,
            "eligible": placement.eligible,
            "rejections": placement.grounds.rejections,
        }

    def refusal(self, request: SchedulingRequest, refusal: Refusal, candidates: int) -> dict[str, Any]:
        """What is said of a refusal; `candidates` are all seeds there were."""
        return {
            "class": self.class_of(request),
            "rule": refusal.rule,
            "reason": refusal.message,
            "candidates": candidates,
            "rejections": self._rejections(refusal),
        }

    def class_of(self, request: SchedulingRequest) -> str:
        """The name of the class, as waiting shoots have it."""
        known = self._classes.get(request)
        if known is None:
            if len(self._classes) >= MOST_REMEMBERED:
                self._classes.clear()
            known = self._classes[request] = waiting_class(request)
        return known

    def _rejections(self, refusal: Refusal) -> Mapping[str, int]:
        known = self._counted.get(id(refusal))
        if known is None:
            if len(self._counted) >= MOST_REMEMBERED:
                self._counted.clear()
            counts = dict(Counter(rejection.rule for rejection in refusal.rejections))
            known = self._counted[id(refusal)] = (refusal, counts)  # kept, so that its id is nobody else's
        return known[1]
