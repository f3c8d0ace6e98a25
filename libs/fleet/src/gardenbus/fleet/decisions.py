"""Decisions and condition of a cycle, as the policy snapshot's status records them.

Source: KubeFleet's `newSchedulingDecisionsFromBindings` and `updatePolicySnapshotStatusFromBindings`.
"""

import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from gardenbus.common.api.bitsets import ascending
from gardenbus.common.api.fleet.placement_parts import (
    PLACEMENT_GENERATION,
    ClusterDecision,
    ClusterScore,
    PolicySnapshot,
)
from gardenbus.fleet.binding_classes import BindingRecord
from gardenbus.fleet.cycle_result import FULFILLED, UNFULFILLED, UnexpectedState
from gardenbus.fleet.fleet import Fleet
from gardenbus.fleet.framework import FilteredClusters, Score
from gardenbus.fleet.picking import ScoredCluster


class Limits(NamedTuple):
    """Maximum numbers of recorded decisions."""

    total: int
    """All decisions."""

    others: int
    """Decisions about clusters that were not chosen."""


STATUS = Limits(1000, 20)
"""Limits of a snapshot's status."""

ALL = Limits(sys.maxsize, sys.maxsize)
"""No limits, for simulations and explanations."""

SCHEDULED_CONDITION = "Scheduled"
"""The condition of a policy snapshot."""


def chosen(cluster: str, score: Score | None) -> ClusterDecision:
    """Decision for a chosen cluster; without a score where nothing is ranked."""
    if score is None:
        return ClusterDecision(cluster, selected=True, reason="the policy names it")
    stated = ClusterScore(score.affinity, score.spread)
    return ClusterDecision(cluster, selected=True, cluster_score=stated, reason=f"chosen with {_describe_score(score)}")


def outranked(cluster: str, score: Score) -> ClusterDecision:
    """Decision for a feasible cluster that ranks lower than the chosen ones."""
    stated = ClusterScore(score.affinity, score.spread)
    return ClusterDecision(cluster, cluster_score=stated, reason=f"others rank higher: it has {_describe_score(score)}")


def rejected(cluster: str, reason: str) -> ClusterDecision:
    """Decision for a cluster that cannot be chosen."""
    return ClusterDecision(cluster, reason=reason)


def recorded_decisions(
    fleet: Fleet,
    selected: Iterable[BindingRecord],
    not_picked: Iterable[ScoredCluster],
    filtered: FilteredClusters | None,
    limits: Limits,
) -> tuple[ClusterDecision, ...]:
    """Return the decisions to record: the selected, then the unselected by score, then the rejected by name."""
    decisions = [record.decision for record in selected][: limits.total]
    seen = {decision.cluster_name for decision in decisions}
    room = min(limits.others, limits.total - len(decisions))
    for scored in not_picked:
        if room <= 0:
            return tuple(decisions)
        name = fleet.name(scored.place)
        if name not in seen:
            decisions.append(outranked(name, scored.score))
            room -= 1
    decisions.extend(_rejections(fleet, filtered, seen, room) if filtered else ())
    return tuple(decisions)


def condition(wanted: int, found: int) -> tuple[bool, str, str]:
    """Return status (True: enough were found), reason and message of the condition Scheduled."""
    if found < wanted:
        return False, UNFULFILLED, f"the policy wants {wanted} cluster(s), {found} could be found"
    return True, FULFILLED, f"all clusters that the policy wants were found: {found} cluster(s)"


def observed_generation(snapshot: PolicySnapshot) -> int:
    """Return the placement's generation of a snapshot; raises UnexpectedState where it is missing."""
    return annotated_number(snapshot, PLACEMENT_GENERATION)


def annotated_number(snapshot: PolicySnapshot, annotation: str) -> int:
    """Return a number of a snapshot's annotations; raises UnexpectedState where it is missing."""
    written = snapshot.metadata.annotations.get(annotation, "")
    if not (written.isascii() and written.isdigit()):
        raise UnexpectedState(f"annotation {annotation} of {snapshot.metadata.name} is no number: {written!r}")
    return int(written)


def _rejections(fleet: Fleet, filtered: FilteredClusters, seen: set[str], room: int) -> Iterator[ClusterDecision]:
    """Yield the first ones by name; one that is selected nevertheless counts, and is left out."""
    for place in islice(ascending(filtered.clusters), room):
        name = fleet.name(place)
        if name not in seen:
            yield rejected(name, filtered.reason(place))


def _describe_score(score: Score) -> str:
    return f"affinity score {score.affinity}, topology spread score {score.spread}"
