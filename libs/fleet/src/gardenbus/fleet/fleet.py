"""All member clusters with their lookup indexes, prepared once and shared by many cycles."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import Generic, NamedTuple, Self, TypeVar

from gardenbus.common.api.bitsets import Bitset, bitset_of
from gardenbus.common.api.fleet.member_clusters import NAMESPACE_COLLECTION_SUCCEEDED, ClusterTaint, MemberCluster
from gardenbus.common.api.views import condition_in
from gardenbus.fleet.eligibility import TimedReasons, next_change, reason_at, timed_reasons
from gardenbus.fleet.labels import LabelIndex
from gardenbus.fleet.properties import PropertyTable

T = TypeVar("T")


class FleetEligibility:
    """Eligible clusters from `now` until `until` (unix seconds)."""

    def __init__(self, all_reasons: Sequence[TimedReasons], now: float) -> None:
        self.now = now
        self.until = inf
        places: dict[str, list[int]] = {}
        for place, reasons in enumerate(all_reasons):
            self.until = min(self.until, next_change(reasons, now))
            if reason := reason_at(reasons, now):
                places.setdefault(reason, []).append(place)
        self.ineligible: tuple[tuple[str, Bitset], ...] = tuple(
            (reason, bitset_of(held, len(all_reasons))) for reason, held in places.items()
        )
        """Reasons for ineligibility, each with its clusters."""

    def covers(self, now: float) -> bool:
        """Report whether it still holds at another instant."""
        return self.now <= now <= self.until


class NamespaceIndex:
    """Namespaces by cluster, as far as clusters report them."""

    def __init__(self, clusters: Sequence[MemberCluster]) -> None:
        reporting: list[int] = []
        without: list[int] = []
        places: dict[str, list[int]] = {}
        for place, cluster in enumerate(clusters):
            if condition_in(cluster.status.conditions, NAMESPACE_COLLECTION_SUCCEEDED) is None:
                continue
            reporting.append(place)
            if not cluster.status.namespaces:
                without.append(place)
            for namespace in cluster.status.namespaces:
                places.setdefault(namespace, []).append(place)
        self.reporting = bitset_of(reporting, len(clusters))
        """Clusters that report their namespaces."""
        self.without_any = bitset_of(without, len(clusters))
        """Reporting clusters that have none."""
        self._having = {namespace: bitset_of(held, len(clusters)) for namespace, held in places.items()}

    def having(self, namespace: str) -> Bitset:
        """Return the clusters that have a namespace."""
        return self._having.get(namespace, 0)


class Lazy(Generic[T]):
    """A value that is made on first use, and kept."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: T | None = None

    def __call__(self) -> T:
        """The value."""
        if self._made is None:
            self._made = self._make()
        return self._made


class FleetIndexes(NamedTuple):
    """Lookup indexes over clusters, built on first use."""

    labels: Lazy[LabelIndex]
    properties: Lazy[PropertyTable]
    taints: Lazy[Mapping[tuple[ClusterTaint, ...], Bitset]]
    namespaces: Lazy[NamespaceIndex]
    all_reasons: tuple[TimedReasons, ...]


class Fleet:
    """All member clusters at an instant, immutable. A cluster's place is that of its name among the sorted names."""

    def __init__(
        self,
        members: tuple[MemberCluster, ...],
        places: Mapping[str, int],
        indexes: FleetIndexes,
        eligibility: FleetEligibility,
    ) -> None:
        self.members = members
        """All clusters, by name."""
        self.places = places
        """Their places."""
        self.all_clusters: Bitset = (1 << len(members)) - 1
        """All of them."""
        self.eligibility = eligibility
        """Eligible and ineligible clusters."""
        self.indexes = indexes
        """Lookup indexes."""

    @classmethod
    def of(cls, clusters: Iterable[MemberCluster], now: float, before: "Fleet | None" = None) -> Self:
        """Return the fleet at `now` (unix seconds); of two clusters with one name the later counts.

        `before`, an earlier fleet of mostly the same clusters, lends the indexes that still hold.
        """
        by_name = {cluster.name: cluster for cluster in clusters}
        members = tuple(by_name[name] for name in sorted(by_name))
        if before is None or len(before) != len(members) or any(name not in before.places for name in by_name):
            places = {cluster.name: place for place, cluster in enumerate(members)}
            indexes = _build_indexes(members, tuple(timed_reasons(cluster) for cluster in members))
        else:
            places, indexes = before.places, _reuse_indexes(members, before)
        return cls(members, places, indexes, FleetEligibility(indexes.all_reasons, now))

    def at(self, now: float) -> "Fleet":
        """Return the same clusters at another instant; the same fleet while no eligibility changes."""
        if self.eligibility.covers(now):
            return self
        return Fleet(self.members, self.places, self.indexes, FleetEligibility(self.indexes.all_reasons, now))

    @property
    def labels(self) -> LabelIndex:
        """Their labels."""
        return self.indexes.labels()

    @property
    def properties(self) -> PropertyTable:
        """Their properties."""
        return self.indexes.properties()

    @property
    def taints(self) -> Mapping[tuple[ClusterTaint, ...], Bitset]:
        """The clusters by their taints."""
        return self.indexes.taints()

    @property
    def namespaces(self) -> NamespaceIndex:
        """Their namespaces."""
        return self.indexes.namespaces()

    def name(self, place: int) -> str:
        """Return the name of the cluster at a place."""
        return self.members[place].metadata.name

    def get(self, name: str) -> MemberCluster | None:
        """Return a cluster, or None."""
        place = self.places.get(name)
        return None if place is None else self.members[place]

    def mask(self, names: Iterable[str]) -> Bitset:
        """Return the set of some clusters; unknown names are left out."""
        return bitset_of((self.places[name] for name in names if name in self.places), len(self.members))

    def ineligibility(self, name: str) -> str | None:
        """Return why a cluster of the fleet is not eligible; None when it is."""
        place = self.places[name]
        return next((reason for reason, held in self.eligibility.ineligible if held >> place & 1), None)

    def __contains__(self, cluster: str) -> bool:
        return cluster in self.places

    def __len__(self) -> int:
        return len(self.members)


def _build_indexes(members: tuple[MemberCluster, ...], all_reasons: tuple[TimedReasons, ...]) -> FleetIndexes:
    return FleetIndexes(
        Lazy(lambda: LabelIndex([cluster.metadata.labels for cluster in members])),
        Lazy(lambda: PropertyTable(members)),
        Lazy(lambda: _by_taints(members)),
        Lazy(lambda: NamespaceIndex(members)),
        all_reasons,
    )


def _reuse_indexes(members: tuple[MemberCluster, ...], before: Fleet) -> FleetIndexes:
    """Return the indexes of the same clusters: the earlier ones, with their caches, where nothing has changed."""
    changed = [(old, new) for old, new in zip(before.members, members, strict=True) if old is not new]
    earlier, fresh = before.indexes, _build_indexes(members, ())
    return FleetIndexes(
        earlier.labels if _same(lambda cluster: cluster.metadata.labels, changed) else fresh.labels,
        earlier.properties if _same(property_values, changed) else fresh.properties,
        earlier.taints if _same(lambda cluster: cluster.spec.taints, changed) else fresh.taints,
        earlier.namespaces if _same(reported_namespaces, changed) else fresh.namespaces,
        tuple(
            cached if old is new else timed_reasons(new)
            for old, new, cached in zip(before.members, members, earlier.all_reasons, strict=True)
        ),
    )


def _by_taints(members: Sequence[MemberCluster]) -> Mapping[tuple[ClusterTaint, ...], Bitset]:
    places: dict[tuple[ClusterTaint, ...], list[int]] = {}
    for place, cluster in enumerate(members):
        if cluster.spec.taints:
            places.setdefault(cluster.spec.taints, []).append(place)
    return {taints: bitset_of(held, len(members)) for taints, held in places.items()}


def property_values(cluster: MemberCluster) -> tuple[object, ...]:
    """Return the parts of a cluster that property selectors and sorters read."""
    return ({name: stated.value for name, stated in cluster.status.properties.items()}, cluster.status.resource_usage)


def reported_namespaces(cluster: MemberCluster) -> tuple[object, ...]:
    """Return the parts of a cluster that NamespaceAffinity reads."""
    return (
        condition_in(cluster.status.conditions, NAMESPACE_COLLECTION_SUCCEEDED) is None,
        cluster.status.namespaces.keys(),
    )


def _same(part: Callable[[MemberCluster], object], changed: Sequence[tuple[MemberCluster, MemberCluster]]) -> bool:
    return all(part(old) == part(new) for old, new in changed)
