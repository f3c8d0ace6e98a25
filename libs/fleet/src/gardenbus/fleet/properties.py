"""The properties of clusters as numbers: compared for selectors, interpolated for sorters.

Source: KubeFleet's plug-in ClusterAffinity (`types.go`).
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import inf, isinf, trunc

from gardenbus.common.resources.member_clusters import MemberCluster
from gardenbus.common.resources.quantities import parse_quantity
from gardenbus.fleet.masks import Mask
from gardenbus.fleet.outcome import UnexpectedState

RESOURCE_PREFIX = "resources.kubernetes-fleet.io/"
"""Of the properties that are read from a cluster's resource usage."""

DESCENDING = "Descending"
ASCENDING = "Ascending"

_RESOURCE_PARTS = 2


def written_value(cluster: MemberCluster, name: str) -> str | None:
    """A cluster's property as it is written; None where it has none. Raises UnexpectedState for an impossible name."""
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
    """The number that a text stands for; raises UnexpectedState, which begins with `what`, for none."""
    try:
        return parse_quantity(text)
    except ValueError as error:
        raise UnexpectedState(f"{what}: {error}") from error


def compares(value: Fraction, operator: str, bound: Fraction) -> bool:
    """Whether a comparison holds; raises UnexpectedState for an operator that there is not."""
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
    """How much of a weight a value is worth where the fleet's values lie between `low` and `high`.

    Halves are rounded away from zero. Raises UnexpectedState for a value outside, infinite bounds, an unknown order.
    """
    if isinf(low) or isinf(high) or not low <= value <= high:
        raise UnexpectedState(f"cannot interpolate {value} between {low} and {high}")
    if low == high:
        return 0
    share = (value - low) / (high - low)
    match order:
        case "Descending":
            return _rounded(share * weight)
        case "Ascending":
            return _rounded((1 - share) * weight)
        case _:
            raise UnexpectedState(f"{order!r} is no sort order")


class Column:
    """One property of all clusters."""

    def __init__(self, name: str, clusters: Sequence[MemberCluster]) -> None:
        check_name(name)
        self.present: Mask = 0
        """Which clusters have it."""
        self.by_value: dict[Fraction, Mask] = {}
        """The clusters by its value."""
        self.problems: dict[int, UnexpectedState] = {}
        """Of those where it is no quantity."""
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

    def check(self, clusters: Mask) -> None:
        """Raise UnexpectedState if it is no quantity on one of some clusters."""
        for place, error in self.problems.items():
            if clusters >> place & 1:
                raise UnexpectedState(error.message) from error


class PropertyTable:
    """All properties of all clusters, read when they are asked for."""

    def __init__(self, clusters: Sequence[MemberCluster]) -> None:
        self._clusters = clusters
        self._columns: dict[str, Column] = {}
        self._meeting: dict[tuple[str, str, str], Mask] = {}
        self._shares: dict[tuple[str, str, int], tuple[tuple[Mask, int], ...]] = {}

    def column(self, name: str) -> Column:
        """One property; raises UnexpectedState for an impossible name."""
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = Column(name, self._clusters)
        return column

    def meeting(self, name: str, operator: str, values: tuple[str, ...], among: Mask) -> Mask:
        """Those of some clusters whose property compares as wanted.

        Raises UnexpectedState where a comparison has no meaning; clusters without the property are never compared.
        """
        column = self.column(name)
        column.check(among)
        among &= column.present
        if not among:
            return 0
        if len(values) != 1:
            raise UnexpectedState(f"property {name} is compared with {len(values)} values instead of one")
        known = self._meeting.get((name, operator, values[0]))
        if known is None:
            bound = quantity(values[0], f"property selector {name}")
            known = 0
            for value, clusters in column.by_value.items():
                if compares(value, operator, bound):
                    known |= clusters
            compares(bound, operator, bound)
            self._meeting[name, operator, values[0]] = known
        return among & known

    def shares(self, name: str, order: str, weight: int) -> tuple[tuple[Mask, int], ...]:
        """How much of a weight clusters get by a property; raises UnexpectedState where it is no quantity."""
        column = self.column(name)
        column.check(column.present)
        known = self._shares.get((name, order, weight))
        if known is None:
            known = self._shares[name, order, weight] = _shares(column.by_value, order, weight)
        return known


def _shares(by_value: Mapping[Fraction, Mask], order: str, weight: int) -> tuple[tuple[Mask, int], ...]:
    if not by_value:
        return ()
    low, high = _float(min(by_value)), _float(max(by_value))
    by_share: dict[int, Mask] = {}
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
