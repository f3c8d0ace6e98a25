"""Manifests to measure placements with: member clusters and placements of four sorts. Pure.

Clusters stand in three regions, are of one of four tiers, and differ in what they have. Each belongs to a *ring* of 10
to 20 clusters; what is left over at the end belongs to none.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from gardenbus.common.api.document import Document

Sort = Literal["ring", "affinity", "spread", "all"]

REGION_LABEL = "topology.kubernetes.io/region"
RING_LABEL = "bench.gardenbus.io/ring"
TIER_LABEL = "bench.gardenbus.io/tier"
NODE_COUNT = "kubernetes-fleet.io/node-count"

REGIONS = 3
TIERS = 4
CLUSTERS_WANTED = 10
"""Clusters that a placement PickN requests."""

SMALLEST_RING, LARGEST_RING = 10, 20
LEAST_CLUSTERS = TIERS * (CLUSTERS_WANTED + REGIONS - 1)
"""So that each tier has as many clusters as are requested."""

_CLUSTER = "cluster.kubernetes-fleet.io/v1beta1"
_PLACEMENT = "placement.kubernetes-fleet.io/v1beta1"


class Ring(NamedTuple):
    """Clusters that belong together, by their numbers."""

    number: int
    first: int
    size: int

    @property
    def name(self) -> str:
        """The value of the label."""
        return f"ring-{self.number:03}"


class PlacementCase(NamedTuple):
    """One placement of the bench: its sort, and the number that makes it differ from others of that sort."""

    sort: Sort
    number: int

    @property
    def name(self) -> str:
        """Name of the placement."""
        return f"bench-{self.sort}-{self.number:05}"


def rings(clusters: int) -> Sequence[Ring]:
    """Rings of 10, 11, … 20, 10, … clusters, as many as there is room for."""
    found: list[Ring] = []
    first = 0
    while True:
        size = SMALLEST_RING + len(found) % (LARGEST_RING - SMALLEST_RING + 1)
        if first + size > clusters:
            return found
        found.append(Ring(len(found), first, size))
        first += size


def cluster_name(number: int) -> str:
    """The name of a cluster."""
    return f"member-{number:05}"


def region_of(number: int) -> str:
    """The region of a cluster."""
    return f"region-{number % REGIONS}"


def tier_of(number: int) -> str:
    """The tier of a cluster; not in step with the regions."""
    return f"tier-{number // REGIONS % TIERS}"


def clusters(count: int, heartbeat_at: str) -> Iterator[Document]:
    """MemberClusters that joined, are healthy, and sent a heartbeat at an instant (RFC 3339)."""
    of_cluster = {number: ring.name for ring in rings(count) for number in range(ring.first, ring.first + ring.size)}
    for number in range(count):
        ring = {RING_LABEL: of_cluster[number]} if number in of_cluster else {}
        labels = {REGION_LABEL: region_of(number), TIER_LABEL: tier_of(number), **ring}
        yield {
            "apiVersion": _CLUSTER,
            "kind": "MemberCluster",
            "metadata": {"name": cluster_name(number), "labels": labels},
            "spec": {"heartbeatPeriodSeconds": 60},
            "status": _status(number, heartbeat_at),
        }


def _status(number: int, heartbeat_at: str) -> Document:
    nodes = 3 + number * 7 % 50
    cpus, free = 8 * nodes, 1 + number * 13 % (8 * nodes)
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": heartbeat_at} for kind in ("Joined", "Healthy")
    ]
    return {
        "agentStatus": [{"type": "MemberAgent", "conditions": conditions, "lastReceivedHeartbeat": heartbeat_at}],
        "conditions": [{"type": "Joined", "status": "True", "reason": "Joined"}],
        "properties": {NODE_COUNT: {"value": str(nodes), "observationTime": heartbeat_at}},
        "resourceUsage": {
            "capacity": {"cpu": str(cpus), "memory": f"{4 * cpus}Gi"},
            "allocatable": {"cpu": str(cpus), "memory": f"{4 * cpus}Gi"},
            "available": {"cpu": str(free), "memory": f"{4 * free}Gi"},
        },
    }


def placement_cases(placements: int) -> list[PlacementCase]:
    """As many placements of each of three sorts, and one over all clusters."""
    sorts: tuple[Sort, ...] = ("ring", "affinity", "spread")
    each = max(1, placements // len(sorts))
    return [PlacementCase("all", 0), *(PlacementCase(sort, number) for number in range(each) for sort in sorts)]


def placement(one: PlacementCase, clusters: int) -> Document:
    """A ClusterResourcePlacement of one ClusterRole."""
    return {
        "apiVersion": _PLACEMENT,
        "kind": "ClusterResourcePlacement",
        "metadata": {"name": one.name, "labels": {"sort": one.sort}},
        "spec": {
            "resourceSelectors": [
                {"group": ROLE["apiVersion"].partition("/")[0], "version": "v1", "kind": "ClusterRole", "name": "bench"}
            ],
            "policy": _policy(one, clusters),
            "strategy": {"type": "RollingUpdate"},
        },
    }


ROLE: Document = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "bench"},
    "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}],
}
"""Object that all placements select."""


def ring_of(one: PlacementCase, clusters: int) -> Ring:
    """The ring of a placement of that sort."""
    of_clusters = rings(clusters)
    return of_clusters[one.number % len(of_clusters)]


def _policy(one: PlacementCase, clusters: int) -> Document:
    match one.sort:
        case "all":
            return {"placementType": "PickAll"}
        case "ring":
            return {"placementType": "PickAll", "affinity": _required({RING_LABEL: ring_of(one, clusters).name})}
        case "affinity":
            return {
                "placementType": "PickN",
                "numberOfClusters": CLUSTERS_WANTED,
                "affinity": _required({TIER_LABEL: tier_wanted(one)}, preferred=_preferred(one)),
            }
        case "spread":
            spread = {"topologyKey": REGION_LABEL, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
            return {
                "placementType": "PickN",
                "numberOfClusters": CLUSTERS_WANTED,
                "topologySpreadConstraints": [spread],
            }


def tier_wanted(one: PlacementCase) -> str:
    """The tier that a placement with affinity requires."""
    return f"tier-{one.number % TIERS}"


def _required(labels: Mapping[str, str], preferred: Sequence[Document] = ()) -> Document:
    terms = {"clusterSelectorTerms": [{"labelSelector": {"matchLabels": dict(labels)}}]}
    affinity: Document = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    if preferred:
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = list(preferred)
    return {"clusterAffinity": affinity}


def _preferred(one: PlacementCase) -> list[Document]:
    order = "Descending" if one.number % 2 else "Ascending"
    region = {"labelSelector": {"matchLabels": {REGION_LABEL: region_of(one.number)}}}
    return [
        {"weight": 20, "preference": region},
        {"weight": 80, "preference": {"propertySorter": {"name": NODE_COUNT, "sortOrder": order}}},
    ]


def bindings_expected(one: PlacementCase, clusters: int) -> int:
    """Number of clusters that a placement selects."""
    return {"all": clusters, "ring": ring_of(one, clusters).size}.get(one.sort, CLUSTERS_WANTED)
