"""Properties of clusters as numbers: compared by selectors, interpolated by sorters.

Source: KubeFleet's plug-in ClusterAffinity (`types.go`).
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import inf, isinf, trunc

from gardenbus.common.api.bitsets import Bitset
from gardenbus.common.api.fleet.member_clusters import MemberCluster
from gardenbus.common.api.quantities import parse_quantity
from gardenbus.fleet.cycle_result import UnexpectedState

RESOURCE_PREFIX = "resources.kubernetes-fleet.io/"
"""Prefix of properties that are read from a cluster's resource usage."""

_RESOURCE_PARTS = 2


def written_value(cluster: MemberCluster, name: str) -> str | None:
    """Return a cluster's property as written; None where it has none. Raises UnexpectedState for an invalid name."""
    if not name.startswith(RESOURCE_PREFIX):
        stated = cluster.status.properties.get(name)
        return stated.value if stated else None
    return _usage(cluster, name).get(name.removeprefix(RESOURCE_PREFIX).split("-")[1])


def check_name(name: str) -> None:
    """Raise UnexpectedState for a resource's name that is no `<total|allocatable|available>-<resource>`."""
    if not name.startswith(RESOURCE_PREFIX):
        return
    parts = name.removeprefix(RESOURCE_PREFIX).split("-")
    if len(parts) != _RESOURCE_PARTS or not all(parts):
        raise UnexpectedState(f"{name!r} is no resource property: write it as {RESOURCE_PREFIX}available-cpu")
    if parts[0] not in ("total", "allocatable", "available"):
        raise UnexpectedState(f"{name!r} is no resource property: it is none of total, allocatable and available")


def quantity(text: str, what: str) -> Fraction:
    """Parse a quantity; raises UnexpectedState, whose message begins with `what`, for an invalid one."""
    try:
        return parse_quantity(text)
    except ValueError as error:
        raise UnexpectedState(f"{what}: {error}") from error


def compares(value: Fraction, operator: str, bound: Fraction) -> bool:
    """Compare two values; raises UnexpectedState for an unknown operator."""
    match operator:
        case "Gt":
            return value > bound
        case "Ge":
            return value >= bound
        case "Lt":
            return value < bound
        case "Le":
            return value <= bound
        case "Eq":
            return value == bound
        case "Ne":
            return value != bound
        case _:
            raise UnexpectedState(f"{operator!r} is no operator of a property selector")


def interpolate(value: float, low: float, high: float, *, order: str, weight: int) -> int:
    """Return the share of a weight for a value where the fleet's values lie between `low` and `high`.

    Halves are rounded away from zero. Raises UnexpectedState for a value outside, infinite bounds, an unknown order.
    """
    if isinf(low) or isinf(high) or not low <= value <= high:
        raise UnexpectedState(f"cannot interpolate {value} between {low} and {high}")
    if low == high:
        return 0
    if isinf(high - low):
        value, low, high = value / 2, low / 2, high / 2
    share = (value - low) / (high - low)
    match order:
        case "Descending":
            return _rounded(share * weight)
        case "Ascending":
            return _rounded((1 - share) * weight)
        case _:
            raise UnexpectedState(f"{order!r} is no sort order")


class PropertyColumn:
    """One property of all clusters."""

    def __init__(self, name: str, clusters: Sequence[MemberCluster]) -> None:
        check_name(name)
        self.present: Bitset = 0
        """Clusters that have it."""
        self.by_value: dict[Fraction, Bitset] = {}
        """Clusters by value."""
        self.problems: dict[int, UnexpectedState] = {}
        """Errors by place, where it is no quantity."""
        for place, cluster in enumerate(clusters):
            written = written_value(cluster, name)
            if written is None:
                continue
            self.present |= 1 << place
            try:
                value = quantity(written, f"property {name} of cluster {cluster.name}")
            except UnexpectedState as error:
                self.problems[place] = error
            else:
                self.by_value[value] = self.by_value.get(value, 0) | 1 << place

    def check(self, clusters: Bitset) -> None:
        """Raise UnexpectedState if it is no quantity on one of some clusters."""
        for place, error in self.problems.items():
            if clusters >> place & 1:
                raise UnexpectedState(error.message) from error


class PropertyTable:
    """All properties of all clusters, parsed on first use."""

    def __init__(self, clusters: Sequence[MemberCluster]) -> None:
        self._clusters = clusters
        self._columns: dict[str, PropertyColumn] = {}
        self._matching: dict[tuple[str, str, str], Bitset] = {}
        self._shares: dict[tuple[str, str, int], tuple[tuple[Bitset, int], ...]] = {}

    def column(self, name: str) -> PropertyColumn:
        """Return one property; raises UnexpectedState for an invalid name."""
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = PropertyColumn(name, self._clusters)
        return column

    def satisfying(self, name: str, operator: str, values: tuple[str, ...], among: Bitset) -> Bitset:
        """Return the clusters among `among` whose property satisfies a comparison.

        Raises UnexpectedState for an invalid comparison; clusters without the property are never compared.
        """
        column = self.column(name)
        column.check(among)
        among &= column.present
        if not among:
            return 0
        if len(values) != 1:
            raise UnexpectedState(f"property {name} is compared with {len(values)} values instead of one")
        cached = self._matching.get((name, operator, values[0]))
        if cached is None:
            bound = quantity(values[0], f"property selector {name}")
            cached = 0
            for value, clusters in column.by_value.items():
                if compares(value, operator, bound):
                    cached |= clusters
            compares(bound, operator, bound)
            self._matching[name, operator, values[0]] = cached
        return among & cached

    def shares(self, name: str, order: str, weight: int) -> tuple[tuple[Bitset, int], ...]:
        """Return the share of a weight by clusters; raises UnexpectedState where the property is no quantity."""
        column = self.column(name)
        column.check(column.present)
        cached = self._shares.get((name, order, weight))
        if cached is None:
            cached = self._shares[name, order, weight] = _shares(column.by_value, order, weight)
        return cached


def _shares(by_value: Mapping[Fraction, Bitset], order: str, weight: int) -> tuple[tuple[Bitset, int], ...]:
    if not by_value:
        return ()
    low, high = _float(min(by_value)), _float(max(by_value))
    by_share: dict[int, Bitset] = {}
    for value, clusters in by_value.items():
        share = interpolate(_float(value), low, high, order=order, weight=weight)
        by_share[share] = by_share.get(share, 0) | clusters
    return tuple((clusters, share) for share, clusters in sorted(by_share.items()) if share)


def _usage(cluster: MemberCluster, name: str) -> Mapping[str, str]:
    usage = cluster.status.resource_usage
    match name.removeprefix(RESOURCE_PREFIX).partition("-")[0]:
        case "total":
            return usage.capacity
        case "allocatable":
            return usage.allocatable
        case _:
            return usage.available


def _rounded(value: float) -> int:
    whole = trunc(value)
    return whole if abs(value - whole) < 0.5 else whole + (1 if value > 0 else -1)  # noqa: PLR2004  a half


def _float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf
