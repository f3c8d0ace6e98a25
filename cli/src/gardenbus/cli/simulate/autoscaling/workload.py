"""Workload of shoots: a daily wave, bursts and mass deletions. Seeded, so repeatable."""

from collections.abc import Iterator
from math import cos, pi
from random import Random

import msgspec

DAY = 86_400
_BUSIEST_HOUR = 14


class ShootWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters of the workload. Counts are for the whole time."""

    days: int = 30
    shoots_per_day: float = 240.0
    """Arrivals on a day without burst, on average."""

    wave: float = 0.8
    """Relative amplitude of the daily wave, 0 to 1; the rate is highest in the early afternoon."""

    lifetime_hours: float = 12.0
    """Mean of the lifetimes, which are distributed exponentially."""

    bursts: int = 4
    burst_shoots: int = 80
    """Arrivals of a burst, within a minute."""

    mass_deletions: int = 3
    mass_deletion_share: float = 0.7
    """Part of the existing shoots that is deleted at one moment."""

    seed: int = 1
    """Seed of the random numbers."""


class ShootLifetime(msgspec.Struct, frozen=True, order=True):
    """One shoot's lifetime, in whole seconds."""

    arrives_at: int
    leaves_at: int


def generate_lifetimes(load: ShootWorkload) -> list[ShootLifetime]:
    """Generate all shoots, in the order of their arrival."""
    chance = Random(load.seed)
    end = load.days * DAY
    bursts = sorted(chance.randrange(end) for _ in range(load.bursts))
    deletions = sorted(chance.randrange(end) for _ in range(load.mass_deletions))
    arrivals = [*_wave(load, chance), *_bursts(load, bursts, chance)]
    lifetimes: list[ShootLifetime] = []
    for arrives_at in sorted(arrivals):
        leaves_at = arrives_at + max(int(chance.expovariate(1 / (load.lifetime_hours * 3600))), 1)
        for instant in deletions:
            if arrives_at < instant < leaves_at and chance.random() < load.mass_deletion_share:
                leaves_at = instant
                break
        lifetimes.append(ShootLifetime(arrives_at, leaves_at))
    return lifetimes


def _wave(load: ShootWorkload, chance: Random) -> Iterator[int]:
    """A Poisson process whose rate follows the time of day, by thinning."""
    highest = load.shoots_per_day * (1 + load.wave) / DAY
    instant = 0.0
    while highest > 0:
        instant += chance.expovariate(highest)
        if instant >= load.days * DAY:
            return
        hour = instant % DAY / 3600 - _BUSIEST_HOUR
        if chance.random() * (1 + load.wave) < 1 + load.wave * cos(hour * pi / 12):
            yield int(instant)


def _bursts(load: ShootWorkload, instants: list[int], chance: Random) -> Iterator[int]:
    for instant in instants:
        for _ in range(load.burst_shoots):
            yield min(instant + chance.randrange(60), load.days * DAY - 1)
