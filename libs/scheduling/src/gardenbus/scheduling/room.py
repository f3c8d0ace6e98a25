"""Room on a seed: a place for one more shoot, and what it requests of other resources."""

from collections.abc import Mapping

from gardenbus.common.api.garden.resource_amounts import quantity_of
from gardenbus.common.api.garden.scheduling_requirements import Requests
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.usage_index import UsageIndex


def full_because(usage: int, capacity: int | None) -> str:
    """The reason why there is no room for a shoot; "" when there is. A capacity of None has no limit."""
    return "" if capacity is None or usage < capacity else "seed has no capacity left for shoots"


def lacking_because(taken: Mapping[str, int], allocatable: Mapping[str, int], requests: Requests) -> str:
    """The reason why there is not what is requested: a resource of which too little is left; "" when there is."""
    for resource, amount in requests:
        stated = allocatable.get(resource)
        if stated is None:
            return f"seed states no {resource}, {quantity_of(resource, amount)} are requested"
        left = max(stated - taken.get(resource, 0), 0)
        if amount > left:
            return (
                f"seed has {quantity_of(resource, left)} of {resource} left,"
                f" {quantity_of(resource, amount)} are requested"
            )
    return ""


def has_room(seed: SeedCandidate, usage: UsageIndex, requests: Requests) -> bool:
    """True where a seed takes one more shoot with these requests."""
    if seed.capacity is not None and usage.get(seed.name, 0) >= seed.capacity:
        return False
    return not requests or not lacking_because(usage.taken(seed.name), seed.allocatable, requests)
