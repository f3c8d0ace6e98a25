"""Which bindings go when there are too many: those that never reached a cluster first, then the worst.

Source: KubeFleet's `shouldDownscale`, `downscale` and `sortByClusterScoreAndName`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from gardenbus.common.resources.placement_parts import ClusterDecision
from gardenbus.fleet.classifying import Record
from gardenbus.fleet.outcome import UnexpectedState


class Downscaled(NamedTuple):
    """Who goes, and who stays."""

    removed: list[Record]
    scheduled: list[Record]
    bound: list[Record]


def surplus(wanted: int, present: int, obsolete: int) -> int | None:
    """How many of the present ones are too many for PickN; None when none has to go, obsolete ones included."""
    too_many = present - wanted
    return too_many if too_many >= 0 and too_many + obsolete > 0 else None


def downscale(scheduled: Sequence[Record], bound: Sequence[Record], count: int) -> Downscaled:
    """Choose `count` to go; raises UnexpectedState when there are not as many."""
    if not 0 <= count <= len(scheduled) + len(bound):
        raise UnexpectedState(f"{count} bindings cannot go: there are {len(scheduled) + len(bound)}")
    if count == 0:
        return Downscaled([], list(scheduled), list(bound))
    if count < len(scheduled):
        ordered = worst_first(scheduled)
        return Downscaled(ordered[:count], ordered[count:], list(bound))
    left = count - len(scheduled)
    if left == 0:
        return Downscaled(list(scheduled), [], list(bound))
    ordered = worst_first(bound)
    return Downscaled([*scheduled, *ordered[:left]], [], ordered[left:])


def worst_first(records: Sequence[Record]) -> list[Record]:
    """In the order in which they go: without a score first, then by score, then by the cluster's name."""
    return sorted(records, key=lambda record: (*_worth(record.decision), record.cluster))


def _worth(decision: ClusterDecision) -> tuple[bool, int, int]:
    score = decision.cluster_score
    return (False, 0, 0) if score is None else (True, score.priority_score, score.affinity_score)
