"""Decisions of placements as rows: who was taken with which scores, and why the others were not. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gardenbus.common.api.document import Document

FLEET_KINDS = frozenset(
    {
        "MemberCluster",
        "ClusterResourcePlacement",
        "ResourcePlacement",
        "ClusterResourceBinding",
        "ResourceBinding",
        "ClusterSchedulingPolicySnapshot",
        "SchedulingPolicySnapshot",
        "MemberAgentConfiguration",
    }
)
"""Kinds that placements are decided on."""

LANDSCAPE_KINDS = frozenset({"Seed", "Shoot", "CloudProfile", "GardenletConfiguration", "SchedulerConfiguration"})
"""Kinds that make manifests a landscape of shoots."""

NAMED = 5
"""Clusters with the same reason that are named before the rest is counted."""

COLUMNS = ("CLUSTER", "TAKEN", "AFFINITY", "SPREAD", "WHY")


class DecisionRow(NamedTuple):
    """One cluster, or several that were not taken for the same reason."""

    cluster: str
    selected: str
    affinity: str
    spread: str
    why: str


def is_fleet(documents: Iterable[Document]) -> bool:
    """True when the manifests hold anything for placements."""
    return any(str(document.get("kind")) in FLEET_KINDS for document in documents)


def is_landscape(documents: Iterable[Document]) -> bool:
    """True when the manifests hold anything for shoots and seeds."""
    return any(str(document.get("kind")) in LANDSCAPE_KINDS for document in documents)


def decision_rows(decisions: Iterable[Mapping[str, Any]], *, show_all: bool = False) -> Iterator[DecisionRow]:
    """A row for each cluster that was ranked or taken, and one for each reason that others were not.

    Decisions have the fields `cluster`, `selected`, `affinityScore`, `topologySpreadScore` and `reason`.
    """
    by_reason: dict[str, list[str]] = {}
    for each in decisions:
        has_score = each.get("affinityScore") is not None
        if show_all or has_score or each.get("selected"):
            yield _row(each)
        else:
            by_reason.setdefault(str(each.get("reason") or ""), []).append(str(each.get("cluster")))
    for reason, clusters in by_reason.items():
        yield DecisionRow(named(clusters), "no", "", "", reason)


def named(names: Sequence[str], most: int = NAMED) -> str:
    """Some names; of many the first, and how many more there are."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def summary(entry: Mapping[str, Any]) -> str:
    """`web: 3 of 12 clusters, fulfilled`."""
    decisions: Sequence[Mapping[str, Any]] = entry.get("decisions") or ()
    if error := entry.get("error"):
        return f"{entry.get('placement')}: cannot be decided: {error}"
    selected = sum(bool(each.get("selected")) for each in decisions)
    word = "fulfilled" if entry.get("fulfilled") else "NOT fulfilled"
    return f"{entry.get('placement')}: {selected} of {len(decisions)} clusters, {word}"


def _row(decision: Mapping[str, Any]) -> DecisionRow:
    return DecisionRow(
        str(decision.get("cluster")),
        "yes" if decision.get("selected") else "no",
        _score(decision.get("affinityScore")),
        _score(decision.get("topologySpreadScore")),
        str(decision.get("reason") or ""),
    )


def _score(value: object) -> str:
    return "" if value is None else str(value)
