"""Suggestions for a shoot that no seed fits: the changes of seeds, profile, Project or distances that unblock it.

Named are the seeds that one change would open; a seed that two filters reject needs two.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from gardenbus.common.api.garden.cloudprofiles import CloudProfileSpec
from gardenbus.common.api.garden.seeds import SeedNetworks
from gardenbus.common.api.garden.shoot_networks import network_problems
from gardenbus.common.api.garden.strategies import MINIMAL_DISTANCE
from gardenbus.scheduler.domain.explain.unschedulable_reasons import UnschedulableReasons, unschedulable_reasons
from gardenbus.scheduling.equivalence_classes import Constraints, SchedulingRequest
from gardenbus.scheduling.filters.context import FilterContext, filter_context_of
from gardenbus.scheduling.filters.networks import NETWORKS
from gardenbus.scheduling.filters.provider import allowed_types
from gardenbus.scheduling.filters.row import Filter
from gardenbus.scheduling.filters.strategy import STRATEGY
from gardenbus.scheduling.filters.table import FILTERS, checks_with
from gardenbus.scheduling.group_checks import group_checks_of
from gardenbus.scheduling.results import SeedRejection, Unschedulable
from gardenbus.scheduling.snapshot import Landscape, Snapshot

_NAMED = 3

_RANGE_FIELDS = ("pods", "services", "nodes")
_RANGES = ("100.64.0.0/12", "100.96.0.0/12", "10.96.0.0/12", "10.192.0.0/12", "172.24.0.0/14", "192.168.0.0/17")
"""Ranges that are proposed: private and shared ones, of which few seeds have more than one."""


def suggestions_for(request: SchedulingRequest, snapshot: Snapshot) -> tuple[str, ...]:
    """The changes that would help a shoot which no seed fits, the smallest ones first."""
    constraints, landscape = request.constraints, snapshot.landscape
    context = filter_context_of(constraints, landscape)
    if isinstance(context, Unschedulable):
        return (_missing(context, constraints),)
    context = context.with_request(request, snapshot, group_checks_of(request, snapshot))
    reasons = unschedulable_reasons(request, snapshot)
    rows = {row.name: row for row in (*FILTERS, *checks_with(landscape))}
    single = single_rejections(reasons)
    found = [text for rule, each in single.items() for text in _suggestions(rows[rule], each, context, landscape)]
    distances = _of_distances(reasons, constraints, landscape)
    return (*_of_networks(reasons, context, landscape), *found, *distances, _new_seed(context))


def single_rejections(reasons: UnschedulableReasons) -> Mapping[str, Sequence[SeedRejection]]:
    """The seeds that only one filter rejects, by its name: the filter that keeps most seeds back first."""
    found: dict[str, list[SeedRejection]] = {}
    for against in reasons.values():
        if len(against) == 1:
            found.setdefault(against[0].rule, []).append(against[0])
    for row in (NETWORKS, STRATEGY):
        found.pop(row.name, None)
    return dict(sorted(found.items(), key=lambda rule: (-len(rule[1]), rule[0])))


def _suggestions(
    row: Filter, rejections: Sequence[SeedRejection], context: FilterContext, landscape: Landscape
) -> Iterator[str]:
    if row.suggestion is not None:
        yield row.suggestion(context, _named(rejections), [landscape.seeds_by_name[each.seed] for each in rejections])


def _of_networks(reasons: UnschedulableReasons, context: FilterContext, landscape: Landscape) -> Iterator[str]:
    """Seeds that only the shoot's own ranges keep away: pods and services may be others until it has a seed."""
    alone = [against[0] for against in reasons.values() if [each.rule for each in against] == [NETWORKS.name]]
    for field in _RANGE_FIELDS if context.ranges.stated else ():
        ranges = [msgspec.structs.replace(context.ranges, **{field: each}) for each in _RANGES]
        cured = [
            (found, [each for each in alone if not network_problems(changed, _networks_of(each.seed, landscape))])
            for found, changed in zip(_RANGES, ranges, strict=True)
        ]
        found, seeds = max(cured, key=lambda each: len(each[1]))
        if seeds:
            yield (
                f"the shoot's spec.networking.{field} becomes a range that overlaps none of the seed's, as {found}: "
                f"it fits on {_named(seeds)} then"
            )


def _networks_of(seed: str, landscape: Landscape) -> SeedNetworks:
    return landscape.seeds_by_name[seed].seed.spec.networks


def _of_distances(reasons: UnschedulableReasons, constraints: Constraints, landscape: Landscape) -> Iterator[str]:
    """Seeds that only distance keeps away: a region ConfigMap can bring them near."""
    if landscape.strategy != MINIMAL_DISTANCE or constraints.is_testing:
        return
    far = [against[0] for against in reasons.values() if [each.rule for each in against] == [STRATEGY.name]]
    if not far:
        return
    configmaps = landscape.region_configmaps_of(constraints.profile)
    name = f"the region ConfigMap garden/{configmaps[0].metadata.name}" if configmaps else "a region ConfigMap"
    yield f"{name} gives readable distances from region {constraints.region!r} to {_named(far)} ({far[0].detail})"


def _new_seed(context: FilterContext) -> str:
    """The requirements that any new seed has to meet; always the last way out."""
    constraints = context.constraints
    wanted = [f"of provider {_alternatives(context)}"]
    if not constraints.is_testing:
        wanted.append(f"in or near region {constraints.region!r}")
    if constraints.is_zonal:
        wanted.append("with three zones")
    if constraints.control_plane_zones:
        wanted.append(f"with the zones {', '.join(constraints.control_plane_zones)}")
    if constraints.access_restrictions:
        wanted.append(f"supporting {', '.join(constraints.access_restrictions)}")
    if labels := [str(each) for each in (_profile_labels(context.profile), constraints.selector) if each is not None]:
        wanted.append(f"with labels that match {' and '.join(labels)}")
    return f"a seed is added {', '.join(wanted)}, with room and networks that overlap none of the shoot's"


def _profile_labels(profile: CloudProfileSpec) -> object:
    labels = profile.seed_selector.labels if profile.seed_selector is not None else None
    return labels if labels is not None and str(labels) else None


def _alternatives(context: FilterContext) -> str:
    return " or ".join(repr(kind) if kind != "*" else "any kind" for kind in allowed_types(context))


def _missing(result: Unschedulable, constraints: Constraints) -> str:
    if result.rule == "project":
        return f"a Project with spec.namespace {constraints.namespace!r} is created"
    if not constraints.profile:
        return "the shoot names a cloud profile"
    return f"{constraints.profile_kind} {constraints.profile!r} is created"


def _named(rejections: Sequence[SeedRejection]) -> str:
    names = sorted(rejection.seed for rejection in rejections)
    if len(names) == 1:
        return f"seed {names[0]}"
    more = len(names) - _NAMED
    return f"one of the seeds {', '.join(names[:_NAMED])}{f' and {more} more' if more > 0 else ''}"
