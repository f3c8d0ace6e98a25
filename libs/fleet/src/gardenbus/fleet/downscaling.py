"""Choice of the bindings to remove when there are too many: those that never reached a cluster first, then the worst.

Source: KubeFleet's `shouldDownscale`, `downscale` and `sortByClusterScoreAndName`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from gardenbus.common.api.fleet.placement_parts import ClusterDecision
from gardenbus.fleet.binding_classes import BindingRecord
from gardenbus.fleet.cycle_result import UnexpectedState


class Downscaled(NamedTuple):
    """The removed and the remaining bindings."""

    removed: list[BindingRecord]
    scheduled: list[BindingRecord]
    bound: list[BindingRecord]


def surplus(wanted: int, present: int, obsolete: int) -> int | None:
    """Return how many present bindings PickN has too many; None when none has to go, obsolete ones included."""
    too_many = present - wanted
    return too_many if too_many >= 0 and too_many + obsolete > 0 else None


def downscale(scheduled: Sequence[BindingRecord], bound: Sequence[BindingRecord], count: int) -> Downscaled:
    """Choose `count` bindings to remove; raises UnexpectedState when there are fewer."""
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


def worst_first(records: Sequence[BindingRecord]) -> list[BindingRecord]:
    """Sort by removal order: without a score first, then by score, then by the cluster's name."""
    return sorted(records, key=lambda record: (*_worth(record.decision), record.cluster))


def _worth(decision: ClusterDecision) -> tuple[bool, int, int]:
    score = decision.cluster_score
    return (False, 0, 0) if score is None else (True, score.priority_score, score.affinity_score)
