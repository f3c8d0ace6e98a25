"""Results of decisions. Unschedulable is a value with its reasons, no exception."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

_NAMED_SEEDS = 12


class SeedRejection(msgspec.Struct, frozen=True):
    """The reason why one seed does not fit: the filter's name, and a sentence for people."""

    seed: str
    rule: str
    detail: str


class RejectedSeeds(msgspec.Struct, frozen=True):
    """Seeds that one filter rejects with the same words: of thousands of seeds only the names are kept."""

    rule: str
    detail: str
    seeds: tuple[str, ...]

    @property
    def rejections(self) -> Iterator[SeedRejection]:
        """The rejection of each seed."""
        return (SeedRejection(seed, self.rule, self.detail) for seed in self.seeds)


def grouped(rule: str, details: Iterable[tuple[str, str]]) -> list[RejectedSeeds]:
    """The rejections of one filter, of pairs of seed and detail."""
    seeds: dict[str, list[str]] = {}
    for seed, detail in details:
        seeds.setdefault(detail, []).append(seed)
    return [RejectedSeeds(rule, detail, tuple(each)) for detail, each in seeds.items()]


class FunnelStep(msgspec.Struct, frozen=True):
    """A filter that rejected seeds, and how many were left after it."""

    rule: str
    rejected: int
    left: int


class FilterSummary(msgspec.Struct, frozen=True):
    """The funnel of all filters but networks and capacity, which the shoots of one class share.

    `kept` are the seeds that are left after it, `rejections` counts those that each filter rejected.
    """

    considered: int = 0
    funnel: tuple[FunnelStep, ...] = ()
    kept: int = 0
    rejections: dict[str, int] = msgspec.field(default_factory=dict[str, int])


class RunnerUp(msgspec.Struct, frozen=True):
    """The seed that would have been next, its shoots, and the sum of its scores where scores choose."""

    seed: str
    usage: int
    total: int | None = None


class SeedScore(msgspec.Struct, frozen=True, array_like=True):
    """A score of a seed, 0 to 100, and its weight in the sum."""

    name: str
    weight: int
    score: int

    @property
    def points(self) -> int:
        """Its part of the sum."""
        return self.weight * self.score


class Assignment(msgspec.Struct, frozen=True):
    """The seed chosen. `usage` is its shoots before this one, `distance` None when the strategy measures none.

    `considered` counts all seeds, `eligible` those as near that passed the filters. `nearer` seeds were feasible too,
    but had no room, or networks that clash. `runner_up` is as near as the
    one chosen; None when there is no other, or when finding it would take long. `scores` are those of the seed in the
    profile's order; none where the fewest shoots choose.
    """

    seed: str
    scheduling_generation: int | None
    strategy: str
    distance: int | None
    usage: int
    considered: int
    eligible: int
    capacity: int | None = None
    nearer: int = 0
    runner_up: RunnerUp | None = None
    summary: FilterSummary = FilterSummary()
    scores: tuple[SeedScore, ...] = ()

    @property
    def total(self) -> int | None:
        """The weighted sum of its scores; None where there are none."""
        return sum(each.points for each in self.scores) if self.scores else None


class Unschedulable(msgspec.Struct, frozen=True):
    """No seed fits: the filter after which none was left, the sentence for people, and seeds rejected by filter."""

    rule: str
    message: str
    rejected: Mapping[str, int] = msgspec.field(default_factory=dict[str, int])


SchedulingResult = Assignment | Unschedulable


class RankedSeed(msgspec.Struct, frozen=True):
    """A seed that fits: its place in the ranking (1 is chosen) and what it is ranked by.

    `scores` are in the profile's order; none where the fewest shoots choose.
    """

    seed: str
    place: int
    distance: int | None
    usage: int
    capacity: int | None
    scores: tuple[SeedScore, ...] = ()

    @property
    def total(self) -> int:
        """The weighted sum of its scores."""
        return sum(each.points for each in self.scores)


class Explanation(msgspec.Struct, frozen=True):
    """A decision with every seed either ranked or rejected. `funnel` are the filters that rejected any, in order.

    `unrequested` are the scores that cannot tell seeds apart, as shoots of the class ask for nothing that they read.
    """

    outcome: SchedulingResult
    strategy: str
    funnel: tuple[FunnelStep, ...]
    ranking: tuple[RankedSeed, ...]
    rejections: tuple[SeedRejection, ...]
    unrequested: tuple[str, ...] = ()


def format_rejections(rejections: Sequence[SeedRejection]) -> str:
    """`{a => reason, b => reason}` by name; grouped by reason with counts when the seeds are many."""
    if len(rejections) <= _NAMED_SEEDS:
        named = sorted(rejections, key=lambda rejection: rejection.seed)
        return "{" + ", ".join(f"{rejection.seed} => {rejection.detail}" for rejection in named) + "}"
    by_detail: dict[str, list[str]] = {}
    for rejection in rejections:
        by_detail.setdefault(rejection.detail, []).append(rejection.seed)
    groups = sorted(by_detail.items(), key=lambda group: (-len(group[1]), group[0]))
    shown = [f"{len(seeds)} seeds ({min(seeds)}, …) => {detail}" for detail, seeds in groups[:_NAMED_SEEDS]]
    if len(groups) > _NAMED_SEEDS:
        shown.append(f"{len(groups) - _NAMED_SEEDS} more reasons")
    return "{" + ", ".join(shown) + "}"
