"""What is told about clusters that were chosen, or were not, and whether it has been told already.

Source: KubeFleet's `newSchedulingDecisionsFromBindings` and `updatePolicySnapshotStatusFromBindings`.
"""

import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from gardenbus.common.resources.placement_parts import (
    PLACEMENT_GENERATION,
    ClusterDecision,
    ClusterScore,
    PolicySnapshot,
)
from gardenbus.fleet.classifying import Record
from gardenbus.fleet.fleet import Fleet
from gardenbus.fleet.framework import Filtered, Score
from gardenbus.fleet.masks import ascending
from gardenbus.fleet.outcome import FULFILLED, UNFULFILLED, Cycle, UnexpectedState
from gardenbus.fleet.picking import Scored


class Limits(NamedTuple):
    """How many decisions are told."""

    total: int
    """In all."""

    others: int
    """About clusters that were not chosen."""


STATUS = Limits(1000, 20)
"""What a status holds."""

ALL = Limits(sys.maxsize, sys.maxsize)
"""For people who want to know of everyone."""

SCHEDULED_CONDITION = "Scheduled"
"""The condition of a policy snapshot."""


def chosen(cluster: str, score: Score | None) -> ClusterDecision:
    """That a cluster was chosen; without a score where nothing is ranked."""
    if score is None:
        return ClusterDecision(cluster, selected=True, reason="the policy names it")
    stated = ClusterScore(score.affinity, score.spread)
    return ClusterDecision(cluster, selected=True, cluster_score=stated, reason=f"chosen with {_told(score)}")


def outranked(cluster: str, score: Score) -> ClusterDecision:
    """That a cluster would do, and others do better."""
    stated = ClusterScore(score.affinity, score.spread)
    return ClusterDecision(cluster, cluster_score=stated, reason=f"others rank higher: it has {_told(score)}")


def refused(cluster: str, reason: str) -> ClusterDecision:
    """That a cluster cannot be chosen."""
    return ClusterDecision(cluster, reason=reason)


def told(
    fleet: Fleet, selected: Iterable[Record], not_picked: Iterable[Scored], filtered: Filtered | None, limits: Limits
) -> tuple[ClusterDecision, ...]:
    """The decisions to tell: those selected, then those that are not, by score, and those refused by name."""
    told_of = [record.decision for record in selected][: limits.total]
    seen = {decision.cluster_name for decision in told_of}
    room = min(limits.others, limits.total - len(told_of))
    for scored in not_picked:
        if room <= 0:
            return tuple(told_of)
        name = fleet.name(scored.place)
        if name not in seen:
            told_of.append(outranked(name, scored.score))
            room -= 1
    told_of.extend(_refusals(fleet, filtered, seen, room) if filtered else ())
    return tuple(told_of)


def condition(wanted: int, found: int) -> tuple[bool, str, str]:
    """Whether the condition Scheduled is True; its reason and message."""
    if found < wanted:
        return False, UNFULFILLED, f"the policy wants {wanted} cluster(s), {found} could be found"
    return True, FULFILLED, f"all clusters that the policy wants were found: {found} cluster(s)"


def observed_generation(snapshot: PolicySnapshot) -> int:
    """The placement's generation that a snapshot stands for; raises UnexpectedState where it does not say."""
    return _number(snapshot, PLACEMENT_GENERATION)


def _number(snapshot: PolicySnapshot, annotation: str) -> int:
    written = snapshot.metadata.annotations.get(annotation, "")
    if not (written.isascii() and written.isdigit()):
        raise UnexpectedState(f"annotation {annotation} of {snapshot.metadata.name} is no number: {written!r}")
    return int(written)


def wanted_number(snapshot: PolicySnapshot, annotation: str) -> int:
    """How many clusters a PickN policy wants; raises UnexpectedState where the snapshot does not say."""
    return _number(snapshot, annotation)


def is_told(snapshot: PolicySnapshot, cycle: Cycle) -> bool:
    """Whether a snapshot's status says already what a cycle came to, so that nothing is to be written."""
    status = snapshot.status
    stated = next((each for each in status.conditions if each.type == SCHEDULED_CONDITION), None)
    return not cycle.decides or (
        stated is not None
        and (stated.status, stated.reason, stated.message)
        == ("True" if cycle.fulfilled else "False", cycle.reason, cycle.message)
        and status.observed_crp_generation == observed_generation(snapshot)
        and same_decisions(status.target_clusters, cycle.decisions)
    )


def same_decisions(old: tuple[ClusterDecision, ...], new: tuple[ClusterDecision, ...]) -> bool:
    """Whether the same is said of the same clusters, in whatever order."""
    if len(old) != len(new):
        return False
    by_cluster = {decision.cluster_name: decision for decision in new}
    return all(by_cluster.get(decision.cluster_name) == decision for decision in old)


def _refusals(fleet: Fleet, filtered: Filtered, seen: set[str], room: int) -> Iterator[ClusterDecision]:
    """The first ones by name. One that is selected all the same takes its place among them, and is not told."""
    for place in islice(ascending(filtered.clusters), room):
        name = fleet.name(place)
        if name not in seen:
            yield refused(name, filtered.reason(place))


def _told(score: Score) -> str:
    return f"affinity score {score.affinity}, topology spread score {score.spread}"
