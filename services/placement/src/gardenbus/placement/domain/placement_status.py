"""Status of a placement: aggregated conditions, and the conditions on each cluster.

Conditions follow the order of events; those after the first that is not True are left out.
Source: KubeFleet's `pkg/controllers/placement/placement_status.go`.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gardenbus.common.api.conditions import FALSE, TRUE, UNKNOWN, conditions_of, get_condition, observed_condition
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.apply_strategies import REPORT_DIFF
from gardenbus.common.api.fleet.placement_parts import UNSCHEDULED
from gardenbus.common.api.fleet.placements import PICK_FIXED, PICK_N, Placement
from gardenbus.placement.domain.scheduling_status import CONDITION as SCHEDULED
from gardenbus.placement.domain.scheduling_status import generation_of

PENDING = "SchedulePending"

_COMMON = ("RolloutStarted", "Overridden", "WorkSynchronized")


class _Words(NamedTuple):
    """Reasons of an aggregated condition, by its status."""

    true: str
    false: str
    unknown: str
    about: str


_WORDS: Mapping[str, _Words] = {
    "RolloutStarted": _Words(
        "RolloutStarted", "RolloutNotStartedYet", "RolloutStartedUnknown", "have begun with the latest resources"
    ),
    "Overridden": _Words("OverriddenSucceeded", "OverriddenFailed", "OverriddenPending", "have their overrides"),
    "WorkSynchronized": _Words(
        "WorkSynchronized", "WorkNotSynchronizedYet", "WorkSynchronizedUnknown", "have their Works"
    ),
    "Applied": _Words("ApplySucceeded", "ApplyFailed", "ApplyPending", "have applied everything"),
    "Available": _Words(
        "ResourceAvailable", "ResourceNotAvailableYet", "ResourceAvailableUnknown", "have everything available"
    ),
    "DiffReported": _Words(
        "DiffReportingCompleted", "DiffReportingFailed", "DiffReportingPending", "have reported differences"
    ),
}

_CARRIED = ("failedPlacements", "driftedPlacements", "diffedPlacements")
"""Fields of a binding's status about single resources, copied as they are."""


def status_of(
    placement: Placement, document: Document, snapshot: Document | None, bindings: Sequence[Document], now: str
) -> Document:
    """Return the status of a placement with conditions and clusters renewed; the rest of it stays."""
    status = section(document, "status")
    prefix = placement.kind
    old = conditions_of(document)
    scheduled = _scheduled(placement, snapshot)
    generation = placement.metadata.generation
    conditions = [observed_condition(old, f"{prefix}{SCHEDULED}", scheduled, generation=generation, now=now)]
    clusters: list[Document] = []
    if snapshot is not None and scheduled[1] != PENDING:
        present = {str(each.get("clusterName") or ""): each for each in _list(status, "placementStatuses")}
        decisions = _list(section(snapshot, "status"), "targetClusters")
        types = _types(placement)
        chosen = [each for each in decisions if each.get("selected")]
        by_cluster = _by_cluster(bindings)
        for decision in chosen:
            name = str(decision.get("clusterName"))
            clusters.append(_cluster(placement, decision, by_cluster.get(name), present.get(name), types, now))
        for kind, words in _aggregated(clusters, types):
            conditions.append(observed_condition(old, f"{prefix}{kind}", words, generation=generation, now=now))
        clusters += _rejected(placement, decisions, len(chosen), now)
    return {**status, "conditions": conditions, "placementStatuses": _with_times(clusters, status)}


def _types(placement: Placement) -> tuple[str, ...]:
    strategy = placement.spec.strategy.apply_strategy or {}
    last = ("DiffReported",) if strategy.get("type") == REPORT_DIFF else ("Applied", "Available")
    return (*_COMMON, *last)


def _scheduled(placement: Placement, snapshot: Document | None) -> tuple[str, str, str]:
    pending = (UNKNOWN, PENDING, "The clusters have not been chosen yet.")
    if snapshot is None:
        return pending
    condition = get_condition(conditions_of(snapshot), SCHEDULED)
    observed = section(snapshot, "status").get("observedCRPGeneration") or 0
    generation = section(snapshot, "metadata").get("generation", 1)
    if condition is None or condition.get("observedGeneration") != generation:
        return pending
    if observed < placement.metadata.generation or generation_of(snapshot) < placement.metadata.generation:
        return pending
    return str(condition["status"]), str(condition["reason"]), str(condition["message"])


def _by_cluster(bindings: Sequence[Document]) -> dict[str, Document]:
    """Return the current binding of each cluster: neither Unscheduled nor deleting."""
    found: dict[str, Document] = {}
    for binding in bindings:
        spec = section(binding, "spec")
        if spec.get("state") != UNSCHEDULED and not section(binding, "metadata").get("deletionTimestamp"):
            found[str(spec.get("targetCluster") or "")] = binding
    return found


def _cluster(
    placement: Placement,
    decision: Document,
    binding: Document | None,
    present: Document | None,
    types: Sequence[str],
    now: str,
) -> Document:
    generation = placement.metadata.generation
    old = _list(present or {}, "conditions")
    chosen = (TRUE, "Scheduled", str(decision.get("reason") or ""))
    conditions = [observed_condition(old, SCHEDULED, chosen, generation=generation, now=now)]
    reported = conditions_of(binding) if binding else []
    fresh = section(binding or {}, "metadata").get("generation")
    for kind in types:
        condition = get_condition(reported, kind)
        status = str(condition.get("status")) if condition and condition.get("observedGeneration") == fresh else ""
        if condition is None or status not in (TRUE, FALSE):
            message = "It is in progress." if binding else "There is no binding yet."
            words = (UNKNOWN, _WORDS[kind].unknown, message)
            conditions.append(observed_condition(old, kind, words, generation=generation, now=now))
            break
        words = (status, str(condition.get("reason") or ""), str(condition.get("message") or ""))
        conditions.append(observed_condition(old, kind, words, generation=generation, now=now))
    cluster: Document = {"clusterName": decision.get("clusterName"), "conditions": conditions}
    if binding is not None:
        carried = section(binding, "status")
        cluster |= {name: carried[name] for name in _CARRIED if carried.get(name)}
        cluster |= _overrides(section(binding, "spec"))
        if index := _index(placement, str(section(binding, "spec").get("resourceSnapshotName") or "")):
            cluster["observedResourceIndex"] = index
    return cluster


def _overrides(spec: Document) -> Document:
    """Return the override snapshots of a cluster."""
    fields = {
        "applicableResourceOverrides": spec.get("resourceOverrideSnapshots"),
        "applicableClusterResourceOverrides": spec.get("clusterResourceOverrideSnapshots"),
    }
    return {name: value for name, value in fields.items() if value}


def _aggregated(clusters: Sequence[Document], types: Sequence[str]) -> list[tuple[str, tuple[str, str, str]]]:
    """Return the aggregated conditions with status, reason and message; up to the first that is not True."""
    found: list[tuple[str, tuple[str, str, str]]] = []
    for kind in types if clusters else ():
        statuses = [_status(cluster, kind) for cluster in clusters]
        words, total = _WORDS[kind], len(clusters)
        done = statuses.count(TRUE)
        message = f"{done} of {total} cluster(s) {words.about}."
        if UNKNOWN in statuses:
            found.append((kind, (UNKNOWN, words.unknown, message)))
        elif FALSE in statuses:
            found.append((kind, (FALSE, words.false, message)))
        else:
            found.append((kind, (TRUE, words.true, message)))
            continue
        break
    return found


def _status(cluster: Document, kind: str) -> str:
    condition = get_condition(cluster["conditions"], kind)
    return str(condition["status"]) if condition else UNKNOWN


def _rejected(placement: Placement, decisions: Sequence[Document], chosen: int, now: str) -> list[Document]:
    """Return entries for missing clusters, with reasons of rejected ones; such entries name no cluster."""
    policy = placement.policy
    if policy.placement_type == PICK_N:
        wanted = policy.number_of_clusters or 0
    else:
        wanted = len(policy.cluster_names) if policy.placement_type == PICK_FIXED else 0
    others = [each for each in decisions if not each.get("selected")]
    generation = placement.metadata.generation
    return [
        {"conditions": [observed_condition([], SCHEDULED, words, generation=generation, now=now)]}
        for each in others[: max(0, wanted - chosen)]
        for words in [(FALSE, "ScheduleFailed", str(each.get("reason") or ""))]
    ]


def _with_times(clusters: list[Document], status: Document) -> list[Document]:
    """Keep the transition times of entries without a cluster whose message is unchanged."""
    nameless = [each for each in _list(status, "placementStatuses") if not each.get("clusterName")]
    before = {str(_only(each).get("message")): each for each in nameless}
    return [
        each if each.get("clusterName") else _same_but_times(each, before.get(str(_only(each).get("message"))))
        for each in clusters
    ]


def _only(nameless: Document) -> Document:
    """Return the only condition of an entry without a cluster."""
    conditions = _list(nameless, "conditions")
    return conditions[0] if conditions else {}


def _same_but_times(new: Document, old: Document | None) -> Document:
    since = _only(old or {}).get("lastTransitionTime")
    if since is None:
        return new
    return {**new, "conditions": [{**_only(new), "lastTransitionTime": since}]}


def _index(placement: Placement, snapshot: str) -> str:
    return snapshot.removeprefix(f"{placement.metadata.name}-").removesuffix("-snapshot") if snapshot else ""


def _list(document: Document, field: str) -> list[Document]:
    present: list[Document] | None = document.get(field)
    return present or []
