"""How many replicas are needed: by what is used, by who waits, and at least for the shoots that are there."""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil

import msgspec

from gardenbus.autoscaler.decide.landscape import SetOfSeeds
from gardenbus.autoscaler.decide.metrics import Measured, Tolerance, Unmeasured, fewest_that_hold, measure
from gardenbus.common.resources.seed_autoscalers import SeedAutoscalerSpec
from gardenbus.common.resources.seeds import SHOOTS


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """What a set needs, bounds and pace apart.

    `replicas` is the most that anything asks for, `reason` what that is, `holding` what the shoots that are there need,
    `measurements` what was found of each metric.
    """

    replicas: int
    reason: str
    holding: int
    measurements: Sequence[Measured | Unmeasured]

    @property
    def unmeasured(self) -> Sequence[Unmeasured]:
        """The metrics that cannot be told."""
        return [each for each in self.measurements if isinstance(each, Unmeasured)]


def need_of(spec: SeedAutoscalerSpec, seeds: SetOfSeeds, tolerance: Tolerance) -> Need:
    """The highest of what the metrics, the waiting shoots and the placed ones ask for.

    While a metric cannot be told, it asks for what is ordered: others may raise that, and nothing lowers it. Shoots
    that are being placed raise nothing either, but what they would need is not taken away before it is known where.
    """
    measurements = [measure(metric, seeds, tolerance) for metric in spec.measured]
    asked = [_asked(measurement, seeds) for measurement in measurements]
    if seeds.pending and seeds.places_of_new_seed:
        asked.append(_for_pending(seeds))
    holding = holding_of(seeds)
    asked.append((holding, f"{_shoots(seeds.shoots)} on its seeds"))
    if seeds.coming:
        placed = msgspec.structs.replace(seeds, shoots=seeds.shoots + seeds.coming, coming=0)
        needed = need_of(spec, placed, tolerance).replicas
        asked.append((min(needed, seeds.ordered), f"{_shoots(seeds.coming)} being placed"))
    replicas, reason = max(asked, key=lambda each: each[0])
    return Need(replicas=replicas, reason=reason, holding=holding, measurements=measurements)


def holding_of(seeds: SetOfSeeds) -> int:
    """How many of the set's seeds must stay to hold the shoots that are on them, whichever seeds stay."""
    places = [None if room is None else Fraction(ceil(room)) for room in seeds.rooms(SHOOTS)]
    return fewest_that_hold(seeds.shoots, places)


def _asked(measurement: Measured | Unmeasured, seeds: SetOfSeeds) -> tuple[int, str]:
    if isinstance(measurement, Measured):
        return measurement.replicas, measurement.reason
    return seeds.ordered, measurement.message


def _for_pending(seeds: SetOfSeeds) -> tuple[int, str]:
    """Those that are being built will take some of the waiting shoots; while any wait, no seed is too many."""
    needed = -(-seeds.pending // seeds.places_of_new_seed)
    more = max(needed - seeds.building, 0)
    noun = "shoot fits" if seeds.pending == 1 else "shoots fit"
    return seeds.count + more, f"{seeds.pending} pending {noun} a new seed"


def _shoots(number: int) -> str:
    return "1 shoot is" if number == 1 else f"{number} shoots are"
