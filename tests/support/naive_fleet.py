"""KubeFleet's scheduling, in its simplest form: one cluster after the other, one batch after the other.

Oracle of the property tests. Without terms required during execution, and without namespaces.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import msgspec

from gardenbus.common.api.document import Document
from gardenbus.common.api.fleet.member_clusters import MemberCluster
from gardenbus.common.api.fleet.placement_parts import PREVIOUS_STATE, ResourceBinding
from tests.support.fleets import CURRENT


class NaiveBinding(msgspec.Struct):
    """A binding that may be written again and again."""

    cluster: str
    state: str
    snapshot: str
    score: tuple[int, int] | None
    previous: str | None
    deleting: bool = False

    @classmethod
    def of(cls, binding: ResourceBinding) -> "NaiveBinding":
        score = binding.spec.cluster_decision.cluster_score
        return cls(
            binding.spec.target_cluster,
            binding.spec.state,
            binding.spec.scheduling_policy_snapshot_name,
            (score.priority_score, score.affinity_score) if score else None,
            binding.metadata.annotations.get(PREVIOUS_STATE),
            binding.is_deleting,
        )

    def mark_unscheduled(self) -> None:
        self.previous, self.state = self.state, "Unscheduled"

    def adopt(self, score: tuple[int, int] | None) -> None:
        if self.state == "Unscheduled":
            assert self.previous
            self.state, self.previous = self.previous, None
        self.snapshot, self.score = CURRENT, score


def schedule(
    policy: Document,
    clusters: Sequence[MemberCluster],
    bindings: Sequence[ResourceBinding],
    eligible: Callable[[MemberCluster], bool],
) -> dict[str, list[tuple[str, str, tuple[int, int] | None]]]:
    """Result per cluster: (state, snapshot, score) of each binding that is not being deleted."""
    stored = [NaiveBinding.of(binding) for binding in bindings]
    while _cycle(policy, clusters, stored, eligible):
        pass
    remaining: dict[str, list[tuple[str, str, tuple[int, int] | None]]] = {}
    for one in stored:
        if not one.deleting:
            remaining.setdefault(one.cluster, []).append((one.state, one.snapshot, one.score))
    return {cluster: sorted(each, key=str) for cluster, each in remaining.items()}


def _cycle(
    policy: Document,
    clusters: Sequence[MemberCluster],
    stored: list[NaiveBinding],
    eligible: Callable[[MemberCluster], bool],
) -> bool:
    """Run one of KubeFleet's cycles; return whether another follows at once."""
    unscheduled, obsolete, scheduled, bound = _classified(clusters, stored)
    kind = policy["placementType"]
    if kind == "PickFixed":
        here = {one.cluster for one in scheduled + bound}
        by_name = {cluster.name: cluster for cluster in clusters}
        names = [name for name in policy["clusterNames"] if name in by_name and eligible(by_name[name])]
        if policy["clusterNames"]:
            _cross(dict.fromkeys(name for name in names if name not in here), unscheduled, obsolete, stored)
        return False
    selected = {one.cluster for one in scheduled + bound}
    passed = [
        cluster
        for cluster in clusters
        if _matches(policy, cluster)
        and eligible(cluster)
        and _tolerated(policy, cluster)
        and cluster.name not in selected
    ]
    if kind == "PickAll":
        _cross({cluster.name: (0, 0) for cluster in passed}, unscheduled, obsolete, stored)
        return False
    wanted = policy["numberOfClusters"]
    present = len(scheduled) + len(bound)
    if wanted <= present:
        if present - wanted + len(obsolete) > 0:
            _downscale(present - wanted, scheduled, bound, obsolete)
        return False
    constraints = policy.get("topologySpreadConstraints", [])
    desired = wanted - present
    limit = min(desired, 1) if constraints else desired
    spread = {cluster.name: _spread(constraints, cluster, clusters, selected) for cluster in clusters}
    sticky = {one.cluster for one in obsolete}
    ranked = sorted(
        (
            ((points, _affinity(policy, cluster, clusters), int(cluster.name in sticky)), cluster.name)
            for cluster in passed
            if (points := spread[cluster.name]) is not None
        ),
        reverse=True,
    )
    picked = {name: (score[0], score[1]) for score, name in ranked[:limit]}
    made = _cross(picked, unscheduled, obsolete, stored)
    return desired > limit and made == limit


def _classified(clusters: Sequence[MemberCluster], stored: Sequence[NaiveBinding]) -> tuple[list[NaiveBinding], ...]:
    there = {cluster.name for cluster in clusters if not cluster.is_deleting}
    classes: tuple[list[NaiveBinding], ...] = ([], [], [], [])
    unscheduled, obsolete, scheduled, bound = classes
    for one in stored:
        if one.deleting:
            continue
        if one.state == "Unscheduled":
            unscheduled.append(one)
        elif one.cluster not in there:
            one.mark_unscheduled()
        elif one.snapshot != CURRENT:
            obsolete.append(one)
        else:
            (scheduled if one.state == "Scheduled" else bound).append(one)
    return classes


def _cross(
    picked: Mapping[str, tuple[int, int] | None],
    unscheduled: list[NaiveBinding],
    obsolete: list[NaiveBinding],
    stored: list[NaiveBinding],
) -> int:
    present_clusters = set[str]()
    for one in obsolete:
        present_clusters.add(one.cluster)
        if one.cluster in picked:
            one.adopt(picked[one.cluster])
        else:
            one.mark_unscheduled()
    for one in unscheduled:
        present_clusters.add(one.cluster)
        if one.cluster in picked:
            one.adopt(picked[one.cluster])
    stored += [
        NaiveBinding(name, "Scheduled", CURRENT, score, None)
        for name, score in picked.items()
        if name not in present_clusters
    ]
    return len(picked)


def _downscale(
    count: int, scheduled: list[NaiveBinding], bound: list[NaiveBinding], obsolete: list[NaiveBinding]
) -> None:
    def order(one: NaiveBinding) -> Any:
        return (one.score is not None, one.score or (0, 0), one.cluster)

    for one in [*obsolete, *(sorted(scheduled, key=order) + sorted(bound, key=order))[:count]]:
        one.mark_unscheduled()


def _matches(policy: Document, cluster: MemberCluster) -> bool:
    affinity = policy.get("affinity", {}).get("clusterAffinity", {})
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("clusterSelectorTerms", [])
    return not terms or any(_matches_term(term, cluster) for term in terms)


def _matches_term(term: Document, cluster: MemberCluster) -> bool:
    for key, value in term.get("labelSelector", {}).get("matchLabels", {}).items():
        if cluster.metadata.labels.get(key) != value:
            return False
    for wanted in term.get("propertySelector", {}).get("matchExpressions", []):
        value = _value(cluster, wanted["name"])
        bound = Fraction(wanted["values"][0])
        if value is None:
            return False
        if not {"Gt": value > bound, "Le": value <= bound, "Ne": value != bound}[wanted["operator"]]:
            return False
    return True


def _value(cluster: MemberCluster, name: str) -> Fraction | None:
    stated = cluster.status.properties.get(name)
    return Fraction(stated.value) if stated else None


def _tolerated(policy: Document, cluster: MemberCluster) -> bool:
    keys = {toleration["key"] for toleration in policy.get("tolerations", [])}
    return all(taint.key in keys for taint in cluster.spec.taints)


def _affinity(policy: Document, cluster: MemberCluster, clusters: Sequence[MemberCluster]) -> int:
    affinity = policy.get("affinity", {}).get("clusterAffinity", {})
    total = 0
    for preference in affinity.get("preferredDuringSchedulingIgnoredDuringExecution", []):
        term, weight = preference["preference"], preference["weight"]
        if not _matches_term({"labelSelector": term.get("labelSelector", {})}, cluster):
            continue
        if "propertySorter" not in term:
            total += weight
            continue
        values = [value for one in clusters if (value := _value(one, term["propertySorter"]["name"])) is not None]
        own = _value(cluster, term["propertySorter"]["name"])
        if own is None or min(values) == max(values):
            continue
        share = (own - min(values)) / (max(values) - min(values))
        exact = weight * (share if term["propertySorter"]["sortOrder"] == "Descending" else 1 - share)
        total += int(abs(exact) + Fraction(1, 2)) * (1 if exact > 0 else -1)
    return total


def _spread(
    constraints: Sequence[Document], cluster: MemberCluster, clusters: Sequence[MemberCluster], selected: set[str]
) -> int | None:
    """The score by spread; None for a hard violation."""
    points = 0
    hard = [one for one in constraints if one["whenUnsatisfiable"] == "DoNotSchedule"]
    for constraint in hard + [one for one in constraints if one not in hard]:
        key = constraint["topologyKey"]
        domain = cluster.metadata.labels.get(key)
        if domain is None:
            continue
        counts = {one.metadata.labels[key]: 0 for one in clusters if key in one.metadata.labels}
        for one in clusters:
            if one.name in selected and key in one.metadata.labels:
                counts[one.metadata.labels[key]] += 1
        before = max(counts.values()) - min(counts.values())
        after = {**counts, domain: counts[domain] + 1}
        change = max(after.values()) - min(after.values()) - before if len(counts) > 1 else 1
        if before + change <= constraint["maxSkew"]:
            points -= change
        elif constraint in hard:
            return None
        else:
            points -= 1000
    return points
