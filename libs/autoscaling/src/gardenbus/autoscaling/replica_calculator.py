"""Replica proposal: from measured usage, pending shoots, and at least for the shoots that are placed."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from math import ceil

import msgspec

from gardenbus.autoscaling.resource_metrics import Measured, Tolerance, Unmeasured, fewest_to_hold, measure
from gardenbus.autoscaling.seed_set import SeedSetState
from gardenbus.common.api.garden.seed_autoscalers import SeedAutoscalerSpec
from gardenbus.common.api.garden.seeds import SHOOTS


class ReplicaProposal(msgspec.Struct, frozen=True, kw_only=True):
    """Replicas that a set needs, regardless of bounds and pace.

    `replicas` is the highest proposal, `reason` its reason, `for_placed` the replicas that the placed shoots need,
    `measurements` the results of all metrics.
    """

    replicas: int
    reason: str
    for_placed: int
    measurements: Sequence[Measured | Unmeasured]

    @property
    def unmeasured(self) -> Sequence[Unmeasured]:
        """The metrics that could not be measured."""
        return [each for each in self.measurements if isinstance(each, Unmeasured)]


def propose_replicas(spec: SeedAutoscalerSpec, seeds: SeedSetState, tolerance: Tolerance) -> ReplicaProposal:
    """The highest of the metrics' proposals and those for pending and placed shoots.

    A metric that cannot be measured proposes the ordered number: others may raise that, and nothing lowers it. Shoots
    that are being scheduled raise nothing either, but what they would need is not removed before their seed is decided.
    """
    measurements = [measure(metric, seeds, tolerance) for metric in spec.measured]
    proposals = [_requested(measurement, seeds) for measurement in measurements]
    if seeds.pending and seeds.new_seed_capacity:
        proposals.append(_for_pending(seeds))
    for_placed = replicas_for_placed(seeds)
    proposals.append((for_placed, f"{_shoots(seeds.shoots)} on its seeds"))
    if seeds.being_scheduled:
        placed = msgspec.structs.replace(seeds, shoots=seeds.shoots + seeds.being_scheduled, being_scheduled=0)
        needed = propose_replicas(spec, placed, tolerance).replicas
        proposals.append((min(needed, seeds.ordered), f"{_shoots(seeds.being_scheduled)} being placed"))
    replicas, reason = max(proposals, key=lambda each: each[0])
    return ReplicaProposal(replicas=replicas, reason=reason, for_placed=for_placed, measurements=measurements)


def replicas_for_placed(seeds: SeedSetState) -> int:
    """Replicas that must stay to hold the shoots on the set's seeds, and what they request, whichever seeds stay."""
    places: Counter[Fraction | None] = Counter()
    for capacity, replicas in seeds.capacities(SHOOTS).items():
        places[None if capacity is None else Fraction(ceil(capacity))] += replicas
    held = [fewest_to_hold(seeds.shoots, places)]
    for resource, amount in seeds.requested.items():
        stated: Counter[Fraction | None] = Counter()
        for capacity, replicas in seeds.capacities(resource).items():
            stated[capacity or Fraction()] += replicas  # a seed that does not state it has none of it
        held.append(fewest_to_hold(amount, stated))
    return max(held)


def _requested(measurement: Measured | Unmeasured, seeds: SeedSetState) -> tuple[int, str]:
    if isinstance(measurement, Measured):
        return measurement.replicas, measurement.reason
    return seeds.ordered, measurement.message


def _for_pending(seeds: SeedSetState) -> tuple[int, str]:
    """Seeds under construction will hold some of the pending shoots; while any are pending, no seed is surplus."""
    needed = -(-seeds.pending // seeds.new_seed_capacity)
    more = max(needed - seeds.building, 0)
    noun = "shoot fits" if seeds.pending == 1 else "shoots fit"
    return seeds.count + more, f"{seeds.pending} pending {noun} a new seed"


def _shoots(number: int) -> str:
    return "1 shoot is" if number == 1 else f"{number} shoots are"
