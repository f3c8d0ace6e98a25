"""The rules that a seed must pass, one function each, and their one order.

A `Filter` gets the seeds that the ones before it kept; when it keeps none, its sentence is the refusal. A `Check` looks
at one seed that all filters kept, and the first one that objects is that seed's reason. Users' own filters are checks
between taints and capacity. Source: `pkg/scheduler/controller/shoot/reconciler.go` of Gardener, whose code decides on
the order where its documentation differs.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from gardenbus.scheduling.landscape import SeedCandidate
from gardenbus.scheduling.rules import (
    access_restrictions,
    dns,
    emergency_stop,
    provider,
    seed_selectors,
    usable,
    zones,
)
from gardenbus.scheduling.rules.filtering import Filtered, Inquiry
from gardenbus.scheduling.seed_index import SeedIndex

FilterFunction = Callable[[Inquiry, Sequence[SeedCandidate]], Filtered]
Narrowing = Callable[[Inquiry, SeedIndex, int], int]


class Filter(NamedTuple):
    """A rule over all seeds that are left. `narrow` keeps the same ones of a set of an index, without saying why."""

    name: str
    apply: FilterFunction
    narrow: Narrowing


def _one_by_one(name: str, apply: FilterFunction, reads: Callable[[Inquiry], Hashable]) -> Filter:
    """A rule that looks at each seed by itself; `reads` is all of an inquiry that it looks at."""

    def narrow(inquiry: Inquiry, index: SeedIndex, bits: int) -> int:
        return bits & index.those((name, reads(inquiry)), lambda seed: bool(apply(inquiry, (seed,)).kept))

    return Filter(name, apply, narrow)


FILTERS = (
    _one_by_one("usable", usable.keep_usable, lambda _: ()),
    Filter("cloudprofile-selector", seed_selectors.keep_selected_by_profile, seed_selectors.narrow_by_profile),
    Filter("shoot-selector", seed_selectors.keep_selected_by_shoot, seed_selectors.narrow_by_shoot),
    _one_by_one("provider", provider.keep_allowed_providers, provider.allowed_types),
    _one_by_one("zonal-control-plane", zones.keep_zonal, lambda inquiry: inquiry.demand.is_zonal),
    Filter("zones", zones.keep_zones, zones.narrow_zones),
    _one_by_one(
        "access-restrictions", access_restrictions.keep_supporting, lambda inquiry: inquiry.demand.access_restrictions
    ),
    Filter("dns-domain", dns.keep_domain, dns.narrow_domain),
    _one_by_one("emergency-stop", emergency_stop.keep_running, lambda _: ()),
)

NETWORKS = "networks"
TAINTS = "taints"
CAPACITY = "capacity"
STRATEGY = "strategy"
RULES = frozenset({"cloudprofile", "project", *(rule.name for rule in FILTERS), NETWORKS, TAINTS, CAPACITY, STRATEGY})
"""The names of all rules of ours, as refusals and explanations give them."""

CHECKS = (NETWORKS, TAINTS, CAPACITY)
"""The checks in order; the functions are `network_problems`, `taint_problem` and `capacity.problem`."""
