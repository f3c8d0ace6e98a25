"""What of a Seed is counted, and the sums over all of them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from math import inf
from typing import Literal, NamedTuple

from gardenbus.common.resources.conditions import UNKNOWN, condition_status, conditions_of
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.seeds import GARDENLET_READY, document_is_ready, removal_mark, shoot_capacity
from gardenbus.lifecycle.decide.freshness import LeaseRecord

State = Literal["ready", "cordoned", "not-ready", "unknown", "deleting"]
STATES: tuple[State, ...] = ("ready", "cordoned", "not-ready", "unknown", "deleting")


class Place(NamedTuple):
    """Where seeds stand."""

    provider: str
    region: str


class CountedSeed(NamedTuple):
    """A Seed as it is counted. `allocatable` is None when it takes any number of shoots."""

    state: State
    place: Place
    allocatable: int | None


class Fleet(NamedTuple):
    """All seeds together. Seeds that take any number of shoots are not in `allocatable`."""

    seeds: Mapping[tuple[State, Place], int]
    used: Mapping[Place, int]
    allocatable: Mapping[Place, int]


class Lateness(NamedTuple):
    """How many seeds were not heard of for a while, and how long the one heard of least recently has been silent."""

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
        place=Place(str(provider.get("type") or ""), str(provider.get("region") or "")),
        allocatable=allocatable,
    )


def _state(document: Document) -> State:
    """The worst that can be said of a Seed."""
    if section(document, "metadata").get("deletionTimestamp") or removal_mark(document):
        return "deleting"
    if condition_status(conditions_of(document), GARDENLET_READY) == UNKNOWN:
        return "unknown"
    if not document_is_ready(document):
        return "not-ready"
    if section(document, "spec", "settings", "scheduling").get("visible") is False:
        return "cordoned"
    return "ready"


def fleet(seeds: Mapping[str, CountedSeed], usage: Mapping[str, int]) -> Fleet:
    """Add all seeds up; `usage` are the shoots on each."""
    used: Counter[Place] = Counter()
    allocatable: Counter[Place] = Counter()
    for name, seed in seeds.items():
        used[seed.place] += usage.get(name, 0)
        allocatable[seed.place] += seed.allocatable or 0
    return Fleet(Counter((seed.state, seed.place) for seed in seeds.values()), used, allocatable)


def lateness(records: Iterable[LeaseRecord | None], *, now: float, late_after_seconds: float) -> Lateness:
    """Judge the leases of the seeds that ought to have one; one that was never heard of is late, and has no age."""
    ages = [inf if record is None else now - record.arrived_at for record in records]
    return Lateness(
        late=sum(age > late_after_seconds for age in ages),
        longest_seconds=max((age for age in ages if age != inf), default=0.0),
    )
