"""Comparison of two profiles on one landscape of manifests: shoots that go elsewhere, and stats of both outcomes."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from statistics import median

import msgspec

from gardenbus.cli.simulate.scheduling import (
    Profiles,
    SimulatedAssignment,
    of_kind,
    qualified_name,
    seeds_of,
    simulate,
    usage_after,
)
from gardenbus.common.api.document import Document, opened_lists, section
from gardenbus.common.api.garden.scheduling_profiles import SchedulingProfile
from gardenbus.common.api.garden.strategies import SAME_REGION
from gardenbus.common.api.numbers import thousandths
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.user_filters import SeedFilter

COST_PER_HOUR = "seed.gardenbus.io/cost-per-hour"
"""On a Seed: what it costs, a decimal of at most three places."""

_HOURS_OF_A_MONTH = 730
_THOUSANDTHS = 1000
_PER_CENT = 100


class OtherSeed(msgspec.Struct, frozen=True, rename="camel"):
    """A shoot that two profiles place differently; None is no seed."""

    shoot: str
    first: str | None
    second: str | None


class ProfileStats(msgspec.Struct, frozen=True, rename="camel"):
    """Stats of a landscape once a profile has placed all that waits.

    Shares are per cent of allocatable shoots, of the seeds that state any. `worst_skew` is the greatest difference
    between two seeds of one region in shoots of a project that has shoots there, of which `skewed` is the namespace.
    `cost_a_month` sums up the seeds in use that state a cost; None where no seed does.
    """

    profile: str
    without_seed: int
    seeds_in_use: int
    seeds: int
    least_used: int | None
    median_used: int | None
    most_used: int | None
    worst_skew: int
    skewed: str
    cost_a_month: float | None


class ProfileComparison(msgspec.Struct, frozen=True, rename="camel"):
    """Both outcomes, and the shoots that differ, by name."""

    shoots: tuple[OtherSeed, ...]
    first: ProfileStats
    second: ProfileStats


def compare_profiles(
    documents: Iterable[Document],
    first: tuple[str, SchedulingProfile],
    second: tuple[str, SchedulingProfile],
    *,
    strategy: str = SAME_REGION,
    filters: Sequence[SeedFilter] = (),
) -> ProfileComparison:
    """Place all shoots without seed by one profile, then by the other; profiles come with what they are called here."""
    opened = list(opened_lists(documents))
    outcomes = [
        simulate(opened, strategy, filters, profiles=Profiles(for_all=profile)) for _, profile in (first, second)
    ]
    by_shoot = ({each.shoot: each.seed for each in outcome} for outcome in outcomes)
    here, there = by_shoot
    differing = (OtherSeed(shoot, here[shoot], there[shoot]) for shoot in sorted(here) if here[shoot] != there[shoot])
    stats = (_stats_of(name, opened, outcome) for (name, _), outcome in zip((first, second), outcomes, strict=True))
    return ProfileComparison(tuple(differing), next(stats), next(stats))


def _stats_of(name: str, documents: Sequence[Document], assignments: Sequence[SimulatedAssignment]) -> ProfileStats:
    usage = usage_after(documents, assignments)
    seeds = [SeedCandidate.of(document) for document in of_kind(documents, "Seed")]
    in_use = [seed for seed in seeds if usage[seed.name]]
    shares = sorted(Fraction(_PER_CENT * usage[seed.name], seed.capacity) for seed in seeds if seed.capacity)
    skew, skewed = _worst_skew(documents, assignments, seeds)
    return ProfileStats(
        profile=name,
        without_seed=sum(each.seed is None for each in assignments),
        seeds_in_use=len(in_use),
        seeds=len(seeds),
        least_used=int(shares[0]) if shares else None,
        median_used=int(median(shares)) if shares else None,
        most_used=int(shares[-1]) if shares else None,
        worst_skew=skew,
        skewed=skewed,
        cost_a_month=_cost(seeds, in_use),
    )


def _worst_skew(
    documents: Sequence[Document], assignments: Iterable[SimulatedAssignment], seeds: Sequence[SeedCandidate]
) -> tuple[int, str]:
    chosen = {each.shoot: each.seed for each in assignments if each.seed is not None}
    on_seed: dict[str, Counter[str]] = {}
    for shoot in of_kind(documents, "Shoot"):
        name = qualified_name(shoot)
        seed = chosen.get(name) or next(iter(sorted(seeds_of(shoot))), None)
        if seed is not None:
            on_seed.setdefault(name.partition("/")[0], Counter())[seed] += 1
    regions: dict[tuple[str, str], list[str]] = {}
    for seed in seeds:
        provider = seed.seed.spec.provider
        regions.setdefault((provider.type, provider.region), []).append(seed.name)
    worst = ((-_skew(counts, regions), namespace) for namespace, counts in on_seed.items())
    skew, namespace = min(worst, default=(0, ""))
    return -skew, namespace if skew else ""


def _skew(counts: Counter[str], regions: Mapping[tuple[str, str], Sequence[str]]) -> int:
    spans = (
        max(counts[seed] for seed in seeds) - min(counts[seed] for seed in seeds)
        for seeds in regions.values()
        if any(counts[seed] for seed in seeds)
    )
    return max(spans, default=0)


def _cost(seeds: Iterable[SeedCandidate], in_use: Iterable[SeedCandidate]) -> float | None:
    def of(seed: SeedCandidate) -> int | None:
        return thousandths(section(seed.document, "metadata", "annotations").get(COST_PER_HOUR) or "")

    if all(of(seed) is None for seed in seeds):
        return None
    return sum(of(seed) or 0 for seed in in_use) * _HOURS_OF_A_MONTH / _THOUSANDTHS
