"""The rules that a seed must pass, one function each, and their one order.

A `Filter` gets the seeds that the ones before it kept; when it keeps none, its sentence is the refusal. A `Check` looks
at one seed that all filters kept, and the first one that objects is that seed's reason. Users' own filters are checks
between taints and capacity. Source: `pkg/scheduler/controller/shoot/reconciler.go` of Gardener, whose code decides on
the order where its documentation differs.
"""

from collections.abc import Callable, Sequence
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

FilterFunction = Callable[[Inquiry, Sequence[SeedCandidate]], Filtered]


class Filter(NamedTuple):
    """A rule over all seeds that are left."""

    name: str
    apply: FilterFunction


FILTERS = (
    Filter("usable", usable.keep_usable),
    Filter("cloudprofile-selector", seed_selectors.keep_selected_by_profile),
    Filter("shoot-selector", seed_selectors.keep_selected_by_shoot),
    Filter("provider", provider.keep_allowed_providers),
    Filter("zonal-control-plane", zones.keep_zonal),
    Filter("zones", zones.keep_zones),
    Filter("access-restrictions", access_restrictions.keep_supporting),
    Filter("dns-domain", dns.keep_domain),
    Filter("emergency-stop", emergency_stop.keep_running),
)

NETWORKS = "networks"
TAINTS = "taints"
CAPACITY = "capacity"
STRATEGY = "strategy"
RULES = frozenset({"cloudprofile", "project", *(rule.name for rule in FILTERS), NETWORKS, TAINTS, CAPACITY, STRATEGY})
"""The names of all rules of ours, as refusals and explanations give them."""

CHECKS = (NETWORKS, TAINTS, CAPACITY)
"""The checks in order; the functions are `network_problems`, `taint_problem` and `capacity.problem`."""
