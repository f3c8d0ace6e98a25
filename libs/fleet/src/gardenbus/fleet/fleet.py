"""All member clusters, prepared once and shared by many cycles: what policies ask of them is looked up."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import Generic, NamedTuple, Self, TypeVar

from gardenbus.common.resources.member_clusters import (
    NAMESPACE_COLLECTION_SUCCEEDED,
    MemberCluster,
    Taint,
    condition_in,
)
from gardenbus.fleet.eligibility import Outlook, next_change, objection_at, outlook
from gardenbus.fleet.labels import LabelIndex
from gardenbus.fleet.masks import Mask, mask_of
from gardenbus.fleet.properties import PropertyTable

T = TypeVar("T")


class Standing:
    """Who is eligible from `now` until `until` (unix seconds)."""

    def __init__(self, outlooks: Sequence[Outlook], now: float) -> None:
        self.now = now
        self.until = inf
        places: dict[str, list[int]] = {}
        for place, objections in enumerate(outlooks):
            self.until = min(self.until, next_change(objections, now))
            if reason := objection_at(objections, now):
                places.setdefault(reason, []).append(place)
        self.ineligible: tuple[tuple[str, Mask], ...] = tuple(
            (reason, mask_of(held, len(outlooks))) for reason, held in places.items()
        )
        """Why clusters are not eligible, and which."""

    def covers(self, now: float) -> bool:
        """Whether the same holds at another instant."""
        return self.now <= now <= self.until


class Namespaces:
    """Which namespaces there are where, as far as clusters tell."""

    def __init__(self, clusters: Sequence[MemberCluster]) -> None:
        collecting: list[int] = []
        without: list[int] = []
        places: dict[str, list[int]] = {}
        for place, cluster in enumerate(clusters):
            if condition_in(cluster.status.conditions, NAMESPACE_COLLECTION_SUCCEEDED) is None:
                continue
            collecting.append(place)
            if not cluster.status.namespaces:
                without.append(place)
            for namespace in cluster.status.namespaces:
                places.setdefault(namespace, []).append(place)
        self.collecting = mask_of(collecting, len(clusters))
        """The clusters that tell."""
        self.without_any = mask_of(without, len(clusters))
        """Those of them that have told of none."""
        self._having = {namespace: mask_of(held, len(clusters)) for namespace, held in places.items()}

    def having(self, namespace: str) -> Mask:
        """Those that have a namespace."""
        return self._having.get(namespace, 0)


class Once(Generic[T]):
    """A value that is made when it is asked for, and kept."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: T | None = None

    def __call__(self) -> T:
        """The value."""
        if self._made is None:
            self._made = self._make()
        return self._made


class Prepared(NamedTuple):
    """What is prepared of clusters, whenever it may be."""

    labels: Once[LabelIndex]
    properties: Once[PropertyTable]
    taints: Once[Mapping[tuple[Taint, ...], Mask]]
    namespaces: Once[Namespaces]
    outlooks: tuple[Outlook, ...]


class Fleet:
    """All member clusters at an instant, immutable. A cluster's place is that of its name among the sorted names."""

    def __init__(
        self,
        members: tuple[MemberCluster, ...],
        places: Mapping[str, int],
        prepared: Prepared,
        standing: Standing,
    ) -> None:
        self.members = members
        """All clusters, by name."""
        self.places = places
        """Their places."""
        self.everything: Mask = (1 << len(members)) - 1
        """All of them."""
        self.standing = standing
        """Who is eligible."""
        self.prepared = prepared
        """What is looked up."""

    @classmethod
    def of(cls, clusters: Iterable[MemberCluster], now: float, before: "Fleet | None" = None) -> Self:
        """The fleet at `now` (unix seconds); of two clusters with one name the later counts.

        `before`, an earlier one of mostly the same clusters, spares work: what did not change is taken over from it.
        """
        by_name = {cluster.name: cluster for cluster in clusters}
        members = tuple(by_name[name] for name in sorted(by_name))
        if before is None or len(before) != len(members) or any(name not in before.places for name in by_name):
            places = {cluster.name: place for place, cluster in enumerate(members)}
            prepared = _prepared(members, tuple(outlook(cluster) for cluster in members))
        else:
            places, prepared = before.places, _prepared_again(members, before)
        return cls(members, places, prepared, Standing(prepared.outlooks, now))

    def at(self, now: float) -> "Fleet":
        """The same clusters at another instant; the same fleet while time has changed no cluster's eligibility."""
        if self.standing.covers(now):
            return self
        return Fleet(self.members, self.places, self.prepared, Standing(self.prepared.outlooks, now))

    @property
    def labels(self) -> LabelIndex:
        """Their labels."""
        return self.prepared.labels()

    @property
    def properties(self) -> PropertyTable:
        """Their properties."""
        return self.prepared.properties()

    @property
    def taints(self) -> Mapping[tuple[Taint, ...], Mask]:
        """The clusters by their taints."""
        return self.prepared.taints()

    @property
    def namespaces(self) -> Namespaces:
        """Their namespaces."""
        return self.prepared.namespaces()

    def name(self, place: int) -> str:
        """The name of the cluster at a place."""
        return self.members[place].metadata.name

    def get(self, name: str) -> MemberCluster | None:
        """A cluster, or None."""
        place = self.places.get(name)
        return None if place is None else self.members[place]

    def mask(self, names: Iterable[str]) -> Mask:
        """The set of some clusters; names of none are left out."""
        mask = 0
        for name in names:
            place = self.places.get(name)
            if place is not None:
                mask |= 1 << place
        return mask

    def ineligibility(self, name: str) -> str | None:
        """Why a cluster that is there is not eligible; None when it is."""
        place = self.places[name]
        return next((reason for reason, held in self.standing.ineligible if held >> place & 1), None)

    def __contains__(self, cluster: str) -> bool:
        return cluster in self.places

    def __len__(self) -> int:
        return len(self.members)


def _prepared(members: tuple[MemberCluster, ...], outlooks: tuple[Outlook, ...]) -> Prepared:
    return Prepared(
        Once(lambda: LabelIndex([cluster.metadata.labels for cluster in members])),
        Once(lambda: PropertyTable(members)),
        Once(lambda: _by_taints(members)),
        Once(lambda: Namespaces(members)),
        outlooks,
    )


def _prepared_again(members: tuple[MemberCluster, ...], before: Fleet) -> Prepared:
    """What is prepared of clusters of the same names: the old where it still holds, with all that was looked up."""
    changed = [(old, new) for old, new in zip(before.members, members, strict=True) if old is not new]
    earlier, fresh = before.prepared, _prepared(members, ())
    return Prepared(
        earlier.labels if all(map(_same_labels, changed)) else fresh.labels,
        earlier.properties if all(map(_same_properties, changed)) else fresh.properties,
        earlier.taints if all(old.spec.taints == new.spec.taints for old, new in changed) else fresh.taints,
        earlier.namespaces if all(map(_same_namespaces, changed)) else fresh.namespaces,
        tuple(
            known if old is new else outlook(new)
            for old, new, known in zip(before.members, members, earlier.outlooks, strict=True)
        ),
    )


def _by_taints(members: Sequence[MemberCluster]) -> Mapping[tuple[Taint, ...], Mask]:
    places: dict[tuple[Taint, ...], list[int]] = {}
    for place, cluster in enumerate(members):
        if cluster.spec.taints:
            places.setdefault(cluster.spec.taints, []).append(place)
    return {taints: mask_of(held, len(members)) for taints, held in places.items()}


def measures(cluster: MemberCluster) -> tuple[object, ...]:
    """What of a cluster selectors and sorters of properties look at."""
    return ({name: stated.value for name, stated in cluster.status.properties.items()}, cluster.status.resource_usage)


def told_namespaces(cluster: MemberCluster) -> tuple[object, ...]:
    """What of a cluster NamespaceAffinity looks at."""
    return (
        condition_in(cluster.status.conditions, NAMESPACE_COLLECTION_SUCCEEDED) is None,
        cluster.status.namespaces.keys(),
    )


Pair = tuple[MemberCluster, MemberCluster]


def _same_labels(pair: Pair) -> bool:
    return pair[0].metadata.labels == pair[1].metadata.labels


def _same_properties(pair: Pair) -> bool:
    return measures(pair[0]) == measures(pair[1])


def _same_namespaces(pair: Pair) -> bool:
    return told_namespaces(pair[0]) == told_namespaces(pair[1])
