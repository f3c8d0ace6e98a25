"""What would let a shoot be placed that waits: the changes of seeds, profile, Project or distances that wake it. Pure.

Whatever makes a seed fit wakes those who wait for it (seeds, profiles, Projects, region ConfigMaps, and shoots that
leave). Named are the seeds that one change would open; a seed that two rules refuse needs two.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from gardenbus.common.resources.cloudprofiles import CloudProfileSpec
from gardenbus.common.resources.seeds import EMERGENCY_STOP
from gardenbus.scheduling.landscape import MINIMAL_DISTANCE, Landscape, Snapshot
from gardenbus.scheduling.objections import Objections, objections_to_all
from gardenbus.scheduling.outcome import Refusal, Rejection
from gardenbus.scheduling.request import Demand, SchedulingRequest
from gardenbus.scheduling.rules import CAPACITY, NETWORKS, STRATEGY, TAINTS
from gardenbus.scheduling.rules.filtering import Inquiry
from gardenbus.scheduling.rules.provider import allowed_types
from gardenbus.scheduling.shortlist import inquiry_of

_NAMED = 3

_BY_ITSELF: Mapping[str, Callable[[str, str], str]] = {
    "usable": lambda seeds, detail: f"{seeds} becomes usable ({detail})",
    "zonal-control-plane": lambda seeds, detail: f"{seeds} gets more zones ({detail})",
    "zones": lambda seeds, detail: f"{seeds} gets the zones asked for ({detail})",
    "access-restrictions": lambda seeds, detail: f"{seeds} comes to support what is restricted ({detail})",
    "dns-domain": lambda seeds, detail: f"{seeds} offers a default domain for the shoot's ({detail})",
    "emergency-stop": lambda seeds, _: f"the annotation {EMERGENCY_STOP} is taken off {seeds}",
    TAINTS: lambda seeds, detail: f"{seeds} loses its taints, or the Project allows tolerations for them ({detail})",
    CAPACITY: lambda seeds, _: f"a shoot leaves {seeds}, or status.allocatable.shoots is raised there",
}


def remedies(request: SchedulingRequest, snapshot: Snapshot) -> tuple[str, ...]:
    """The changes that would help a shoot which no seed fits, the smallest ones first."""
    demand, landscape = request.demand, snapshot.landscape
    inquiry = inquiry_of(demand, landscape)
    if isinstance(inquiry, Refusal):
        return (_missing(inquiry, demand),)
    objections = objections_to_all(request, snapshot)
    near = near_misses(objections)
    found = [_remedy(rule, rejections, demand, landscape) for rule, rejections in near.items()]
    return (*found, *_of_distances(objections, demand, landscape), _new_seed(inquiry))


def near_misses(objections: Objections) -> Mapping[str, Sequence[Rejection]]:
    """The seeds that only one rule refuses, by this rule: those that most seeds wait at first."""
    found: dict[str, list[Rejection]] = {}
    for against in objections.values():
        if len(against) == 1 and against[0].rule not in (NETWORKS, STRATEGY):
            found.setdefault(against[0].rule, []).append(against[0])
    return dict(sorted(found.items(), key=lambda rule: (-len(rule[1]), rule[0])))


def _remedy(rule: str, rejections: Sequence[Rejection], demand: Demand, landscape: Landscape) -> str:
    seeds, detail = _named(rejections), rejections[0].detail
    if rule in _BY_ITSELF:
        return _BY_ITSELF[rule](seeds, detail)
    profile = f"{demand.profile_kind} {demand.profile}"
    if rule == "cloudprofile-selector":
        return f"{seeds} gets the labels that the seedSelector of {profile} wants, or that selector changes"
    if rule == "shoot-selector":
        return f"{seeds} gets the labels that the shoot's seedSelector wants ({demand.selector})"
    if rule == "provider":
        types = sorted({landscape.seeds_by_name[each.seed].seed.spec.provider.type for each in rejections})
        return f"{profile} allows the provider {' or '.join(types)} in spec.seedSelector.providerTypes: {seeds}"
    return f"{seeds} comes to satisfy the filter {rule} ({detail})"


def _of_distances(objections: Objections, demand: Demand, landscape: Landscape) -> Iterator[str]:
    """Seeds that only distance keeps away: a region ConfigMap can bring them near."""
    if landscape.strategy != MINIMAL_DISTANCE or demand.is_testing:
        return
    far = [against[0] for against in objections.values() if [each.rule for each in against] == [STRATEGY]]
    if not far:
        return
    configmaps = landscape.region_configmaps_of(demand.profile)
    name = f"the region ConfigMap garden/{configmaps[0].metadata.name}" if configmaps else "a region ConfigMap"
    yield f"{name} gives readable distances from region {demand.region!r} to {_named(far)} ({far[0].detail})"


def _new_seed(inquiry: Inquiry) -> str:
    """What any new seed has to be; always the last way out."""
    demand = inquiry.demand
    wanted = [f"of provider {_alternatives(inquiry)}"]
    if not demand.is_testing:
        wanted.append(f"in or near region {demand.region!r}")
    if demand.is_zonal:
        wanted.append("with three zones")
    if demand.control_plane_zones:
        wanted.append(f"with the zones {', '.join(demand.control_plane_zones)}")
    if demand.access_restrictions:
        wanted.append(f"supporting {', '.join(demand.access_restrictions)}")
    if labels := [str(each) for each in (_profile_labels(inquiry.profile), demand.selector) if each is not None]:
        wanted.append(f"with labels that match {' and '.join(labels)}")
    return f"a seed is added {', '.join(wanted)}, with room and networks that overlap none of the shoot's"


def _profile_labels(profile: CloudProfileSpec) -> object:
    labels = profile.seed_selector.labels if profile.seed_selector is not None else None
    return labels if labels is not None and str(labels) else None


def _alternatives(inquiry: Inquiry) -> str:
    return " or ".join(repr(kind) if kind != "*" else "any kind" for kind in allowed_types(inquiry))


def _missing(refusal: Refusal, demand: Demand) -> str:
    if refusal.rule == "project":
        return f"a Project with spec.namespace {demand.namespace!r} is created"
    if not demand.profile:
        return "the shoot names a cloud profile"
    return f"{demand.profile_kind} {demand.profile!r} is created"


def _named(rejections: Sequence[Rejection]) -> str:
    names = sorted(rejection.seed for rejection in rejections)
    if len(names) == 1:
        return f"seed {names[0]}"
    more = len(names) - _NAMED
    return f"one of the seeds {', '.join(names[:_NAMED])}{f' and {more} more' if more > 0 else ''}"
