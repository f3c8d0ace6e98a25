"""Totals of seeds, usage and capacity for metrics."""

from collections import Counter
from collections.abc import Iterable, Mapping
from math import inf
from typing import NamedTuple

from gardenbus.common.api.conditions import UNKNOWN, condition_status, conditions_of
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.seeds import GARDENLET_READY, document_is_ready, removal_owner, shoot_capacity
from gardenbus.common.api.history import SeedState
from gardenbus.lifecycle.domain.freshness import LeaseRecord

STATES: tuple[SeedState, ...] = ("ready", "cordoned", "not-ready", "unknown", "deleting")


class SeedLocation(NamedTuple):
    """Provider and region of seeds."""

    provider: str
    region: str


class CountedSeed(NamedTuple):
    """A Seed as it is counted. `allocatable` is None when it accepts any number of shoots."""

    state: SeedState
    place: SeedLocation
    allocatable: int | None


class SeedTotals(NamedTuple):
    """Totals over all seeds. Seeds that accept any number of shoots are not in `allocatable`."""

    seeds: Mapping[tuple[SeedState, SeedLocation], int]
    used: Mapping[SeedLocation, int]
    allocatable: Mapping[SeedLocation, int]


class LeaseLateness(NamedTuple):
    """Number of late seeds, and the longest silence."""

    late: int
    longest_seconds: float


def counted_seed(document: Document) -> CountedSeed:
    """Read what is counted; a capacity that is no quantity counts as none."""
    provider = section(document, "spec", "provider")
    try:
        allocatable = shoot_capacity(document)
    except ValueError:
        allocatable = 0
    return CountedSeed(
        state=_state(document),
        place=SeedLocation(str(provider.get("type") or ""), str(provider.get("region") or "")),
        allocatable=allocatable,
    )


def _state(document: Document) -> SeedState:
    """The worst state that applies."""
    if section(document, "metadata").get("deletionTimestamp") or removal_owner(document):
        return "deleting"
    if condition_status(conditions_of(document), GARDENLET_READY) == UNKNOWN:
        return "unknown"
    if not document_is_ready(document):
        return "not-ready"
    if section(document, "spec", "settings", "scheduling").get("visible") is False:
        return "cordoned"
    return "ready"


def total_seeds(seeds: Mapping[str, CountedSeed], usage: Mapping[str, int]) -> SeedTotals:
    """Sum up all seeds; `usage` is the shoots on each."""
    used: Counter[SeedLocation] = Counter()
    allocatable: Counter[SeedLocation] = Counter()
    for name, seed in seeds.items():
        used[seed.place] += usage.get(name, 0)
        allocatable[seed.place] += seed.allocatable or 0
    return SeedTotals(Counter((seed.state, seed.place) for seed in seeds.values()), used, allocatable)


def lateness(records: Iterable[LeaseRecord | None], *, now: float, late_after_seconds: float) -> LeaseLateness:
    """Lateness of the Leases of seeds that ought to have one; a missing one is late, and has no age."""
    ages = [inf if record is None else now - record.arrived_at for record in records]
    return LeaseLateness(
        late=sum(age > late_after_seconds for age in ages),
        longest_seconds=max((age for age in ages if age != inf), default=0.0),
    )
