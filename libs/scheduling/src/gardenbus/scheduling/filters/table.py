"""The filters in their one order: it decides, explains, suggests and documents.

The filters down to `emergency-stop` narrow the seeds that are left, one after another; when one leaves none, it is the
reason. The checks after them examine each seed that is left, and the first that fails is that seed's reason. The
strategy comes last. Source: `pkg/scheduler/controller/shoot/reconciler.go` of Gardener, whose code decides on the order
where its documentation differs.
"""

from gardenbus.common.api.garden.scheduling_profiles import BUILT_IN_FILTERS
from gardenbus.scheduling.filters.access_restrictions import ACCESS_RESTRICTIONS
from gardenbus.scheduling.filters.capacity import CAPACITY
from gardenbus.scheduling.filters.dns import DNS_DOMAIN
from gardenbus.scheduling.filters.emergency_stop import EMERGENCY_STOPPED
from gardenbus.scheduling.filters.groups import SHOOT_AFFINITY_ROW, SHOOT_ANTI_AFFINITY_ROW, TOPOLOGY_SPREAD_ROW
from gardenbus.scheduling.filters.networks import NETWORKS
from gardenbus.scheduling.filters.plugins import PLUGINS
from gardenbus.scheduling.filters.provider import PROVIDER
from gardenbus.scheduling.filters.row import Filter
from gardenbus.scheduling.filters.seed_affinity import SEED_AFFINITY, affinity_row
from gardenbus.scheduling.filters.seed_selectors import PROFILE_SELECTOR, SHOOT_SELECTOR
from gardenbus.scheduling.filters.strategy import STRATEGY
from gardenbus.scheduling.filters.taints import TAINTS
from gardenbus.scheduling.filters.usable import USABLE
from gardenbus.scheduling.filters.user_rows import user_row
from gardenbus.scheduling.filters.zones import ZONAL_CONTROL_PLANE, ZONES
from gardenbus.scheduling.snapshot import Landscape

__all__ = ["CAPACITY", "CHECKS", "FILTERS", "NETWORKS", "RULES", "STRATEGY", "TAINTS", "checks_with"]

FILTERS = (
    USABLE,
    PROFILE_SELECTOR,
    SHOOT_SELECTOR,
    PROVIDER,
    ZONAL_CONTROL_PLANE,
    ZONES,
    ACCESS_RESTRICTIONS,
    DNS_DOMAIN,
    EMERGENCY_STOPPED,
)
"""Filters that narrow, in order; each has a sentence for the case that none is left."""

BETWEEN_SHOOTS = (SHOOT_AFFINITY_ROW, SHOOT_ANTI_AFFINITY_ROW, TOPOLOGY_SPREAD_ROW)

CHECKS = (NETWORKS, TAINTS, SEED_AFFINITY, *BETWEEN_SHOOTS, CAPACITY)
"""Checks on each seed that passed the filters, in order; users' own filters come before the last one."""

RULES = frozenset(BUILT_IN_FILTERS)
"""The names of all rules that are not users' own, as rejections and explanations give them."""


def checks_with(landscape: Landscape) -> tuple[Filter, ...]:
    """The checks with that of the profile's added affinity, and users' own filters in the order of their names."""
    added, user_filters = landscape.added_affinity, landscape.filters
    if not added and not user_filters and landscape.replies is None:
        return CHECKS
    plugins = () if landscape.replies is None else (PLUGINS,)
    affinity = affinity_row(added) if any(each.required for each in added) else SEED_AFFINITY
    return (NETWORKS, TAINTS, affinity, *BETWEEN_SHOOTS, *map(user_row, user_filters), *plugins, CAPACITY)
