"""Shoots that come and go: a daily wave, bursts, and days on which most are deleted at once. Seeded, so repeatable."""

from collections.abc import Iterator
from math import cos, pi
from random import Random

import msgspec

DAY = 86_400
_BUSIEST_HOUR = 14


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """How much comes and goes. Counts are for the whole time."""

    days: int = 30
    shoots_per_day: float = 240.0
    """Arrivals on a day without burst, on average."""

    wave: float = 0.8
    """How much the rate swings around its mean over a day, 0 to 1; it is highest in the early afternoon."""

    lifetime_hours: float = 12.0
    """Mean of the lifetimes, which are distributed exponentially."""

    bursts: int = 4
    burst_shoots: int = 80
    """So many shoots come within a minute."""

    mass_deletions: int = 3
    mass_deletion_share: float = 0.7
    """Part of the shoots there are that is deleted at one moment."""

    seed: int = 1
    """Of the random numbers: the same load every time."""


class Stay(msgspec.Struct, frozen=True, order=True):
    """One shoot: from when to when (whole seconds) it is wanted."""

    arrives_at: int
    leaves_at: int


def stays_of(load: Load) -> list[Stay]:
    """All shoots, in the order in which they come."""
    chance = Random(load.seed)
    end = load.days * DAY
    bursts = sorted(chance.randrange(end) for _ in range(load.bursts))
    deletions = sorted(chance.randrange(end) for _ in range(load.mass_deletions))
    arrivals = [*_wave(load, chance), *_bursts(load, bursts, chance)]
    stays: list[Stay] = []
    for arrives_at in sorted(arrivals):
        leaves_at = arrives_at + max(int(chance.expovariate(1 / (load.lifetime_hours * 3600))), 1)
        for moment in deletions:
            if arrives_at < moment < leaves_at and chance.random() < load.mass_deletion_share:
                leaves_at = moment
                break
        stays.append(Stay(arrives_at, leaves_at))
    return stays


def _wave(load: Load, chance: Random) -> Iterator[int]:
    """A Poisson process whose rate follows the time of day, by thinning."""
    highest = load.shoots_per_day * (1 + load.wave) / DAY
    moment = 0.0
    while highest > 0:
        moment += chance.expovariate(highest)
        if moment >= load.days * DAY:
            return
        hour = moment % DAY / 3600 - _BUSIEST_HOUR
        if chance.random() * (1 + load.wave) < 1 + load.wave * cos(hour * pi / 12):
            yield int(moment)


def _bursts(load: Load, moments: list[int], chance: Random) -> Iterator[int]:
    for moment in moments:
        for _ in range(load.burst_shoots):
            yield min(moment + chance.randrange(60), load.days * DAY - 1)
