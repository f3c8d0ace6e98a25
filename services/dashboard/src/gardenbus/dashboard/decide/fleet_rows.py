"""What the pages of placements show: rows of placements, bindings and member clusters, and what they come to. Pure."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from gardenbus.common.resources.conditions import TRUE
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.member_clusters import HEALTHY, JOINED, MEMBER_AGENT
from gardenbus.common.resources.placement_parts import BOUND, IS_LATEST_LABEL, SCHEDULED
from gardenbus.common.resources.placements import PARENT_LABEL, PICK_ALL, PICK_FIXED, PICK_N
from gardenbus.dashboard.decide.rows import LONGEST_TEXT, Row, common_of, condition, listed, mappings, number, text

STEPS = ("RolloutStarted", "Overridden", "WorkSynchronized", "Applied", "Available")
"""What happens to a binding, in order."""

SILENT_AFTER = timedelta(minutes=5)
"""A cluster whose agent was not heard for longer takes nothing new."""

_LETTERS = {"True": "t", "False": "f", "Unknown": "u"}


class PlacementRow(Row, frozen=True):
    """One placement. `wanted` is None where all that fit are wanted."""

    kind: str
    type: str
    wanted: int | None
    fulfilled: str
    """The status of its condition Scheduled, "" before it has one for this generation."""

    reason: str
    """Why it is not fulfilled."""


class BindingRow(Row, frozen=True):
    """One placement on one cluster."""

    placement: str
    cluster: str
    state: str
    resources: str
    """The snapshot of resources that it gets; "" until it is Bound."""

    steps: str
    """A letter for each of STEPS: t, f, u, or - where nothing is known of the present generation."""

    trouble: str
    """What the first step that is False says."""

    @property
    def is_available(self) -> bool:
        """Whether all that it carries is there and works."""
        return self.state == BOUND and self.steps.endswith("t")


class ClusterRow(Row, frozen=True):
    """One member cluster. `joined` and `healthy` are what its agent says, "" when it has not."""

    joined: str
    healthy: str
    reason: str
    heartbeat: str
    """When its agent was heard last (RFC 3339)."""

    taints: tuple[str, ...]


class SnapshotRow(Row, frozen=True):
    """A snapshot of a placement's policy."""

    placement: str
    latest: bool


class Tally(msgspec.Struct, frozen=True):
    """How many clusters a placement has, and how far they are."""

    selected: int = 0
    bound: int = 0
    available: int = 0


def tally_of(bindings: Iterable[BindingRow]) -> Tally:
    """What bindings come to; those on their way out count for nothing."""
    there = [row for row in bindings if not row.deleting and row.state in (SCHEDULED, BOUND)]
    return Tally(len(there), sum(row.state == BOUND for row in there), sum(row.is_available for row in there))


def placement_row(document: Document) -> PlacementRow:
    """The row of a ClusterResourcePlacement or a ResourcePlacement."""
    policy = section(document, "spec", "policy")
    kind = text(document.get("kind"))
    scheduled = condition(document, f"{kind}Scheduled")
    generation = section(document, "metadata").get("generation")
    is_fresh = scheduled.get("observedGeneration") in (None, generation)
    placement_type = text(policy.get("placementType")) or PICK_ALL
    status = text(scheduled.get("status")) if is_fresh else ""
    return PlacementRow(
        **common_of(document),
        kind=kind.lower(),
        type=placement_type,
        wanted=_wanted(placement_type, policy),
        fulfilled=status,
        reason="" if status == TRUE else text(scheduled.get("message"))[:LONGEST_TEXT],
    )


def binding_row(document: Document) -> BindingRow:
    """The row of a ClusterResourceBinding or a ResourceBinding."""
    spec = section(document, "spec")
    known = {text(each.get("type")): each for each in mappings(section(document, "status").get("conditions"))}
    generation = section(document, "metadata").get("generation")
    current = {kind: each for kind, each in known.items() if each.get("observedGeneration") in (None, generation)}
    failed = _first(each for each in map(current.get, STEPS) if each and each.get("status") == "False")
    return BindingRow(
        **common_of(document),
        placement=text(section(document, "metadata", "labels").get(PARENT_LABEL)),
        cluster=text(spec.get("targetCluster")),
        state=text(spec.get("state")),
        resources=text(spec.get("resourceSnapshotName")),
        steps="".join(_LETTERS.get(text(current.get(step, {}).get("status")), "-") for step in STEPS),
        trouble=(text(failed.get("message")) or text(failed.get("reason")))[:LONGEST_TEXT],
    )


def cluster_row(document: Document) -> ClusterRow:
    """The row of a MemberCluster."""
    agents = mappings(section(document, "status").get("agentStatus"))
    agent = _first(each for each in agents if each.get("type") == MEMBER_AGENT)
    said = {text(each.get("type")): each for each in mappings(agent.get("conditions"))}
    joined, healthy = said.get(JOINED, {}), said.get(HEALTHY, {})
    wrong = _first(each for each in (joined, healthy) if each and each.get("status") != TRUE)
    return ClusterRow(
        **common_of(document),
        joined=text(joined.get("status")),
        healthy=text(healthy.get("status")),
        reason=(text(wrong.get("message")) or text(wrong.get("reason")))[:LONGEST_TEXT],
        heartbeat=text(agent.get("lastReceivedHeartbeat")),
        taints=tuple(map(_taint, mappings(section(document, "spec").get("taints")))),
    )


def snapshot_row(document: Document) -> SnapshotRow:
    """The row of a snapshot of a policy."""
    labels = section(document, "metadata", "labels")
    return SnapshotRow(
        **common_of(document),
        placement=text(labels.get(PARENT_LABEL)),
        latest=labels.get(IS_LATEST_LABEL) == "true",
    )


def decisions_of(snapshot: Document) -> list[Document]:
    """The decisions that a policy snapshot tells, each with both scores (null where nothing was ranked)."""
    return [
        {
            "cluster": text(each.get("clusterName")),
            "selected": each.get("selected") is True,
            "affinityScore": _score(each, "affinityScore"),
            "topologySpreadScore": _score(each, "priorityScore"),
            "reason": text(each.get("reason")),
        }
        for each in mappings(section(snapshot, "status").get("targetClusters"))
    ]


def is_well(row: ClusterRow, now: datetime) -> bool:
    """Whether a cluster's agent has joined, says that it is healthy, and was heard within five minutes."""
    try:
        heard_at = datetime.fromisoformat(row.heartbeat)
    except ValueError:
        return False
    is_heard = heard_at.tzinfo is not None and now - heard_at <= SILENT_AFTER
    return is_heard and not row.deleting and row.joined == TRUE and row.healthy == TRUE


def _first(found: Iterable[Document]) -> Document:
    """The first one, or an empty mapping."""
    nothing: Document = {}
    return next(iter(found), nothing)


def _wanted(placement_type: str, policy: Mapping[str, Any]) -> int | None:
    if placement_type == PICK_N:
        return number(policy.get("numberOfClusters"))
    return len(listed(policy.get("clusterNames"))) if placement_type == PICK_FIXED else None


def _taint(taint: Mapping[str, Any]) -> str:
    value = text(taint.get("value"))
    return f"{text(taint.get('key'))}{f'={value}' if value else ''}"


def _score(decision: Document, name: str) -> int | None:
    score = section(decision, "clusterScore").get(name)
    return score if isinstance(score, int) else None
