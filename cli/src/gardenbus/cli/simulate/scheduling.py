"""Simulated scheduling of a whole landscape of manifests: the same decisions as the live service makes."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from gardenbus.common.api.document import Document, opened_lists, section
from gardenbus.common.api.garden.cloudprofiles import CloudProfile, NamespacedCloudProfile, RegionConfigMap
from gardenbus.common.api.garden.projects import Project
from gardenbus.common.api.garden.scheduling_profiles import SchedulingProfile
from gardenbus.common.api.garden.scheduling_requirements import resolved_of, with_resolved
from gardenbus.common.api.garden.shoots import DEFAULT_SCHEDULER, Shoot
from gardenbus.common.api.garden.strategies import SAME_REGION, STRATEGIES
from gardenbus.common.api.views import read_view
from gardenbus.common.errors import InvalidResource
from gardenbus.scheduling.assignment import decide
from gardenbus.scheduling.equivalence_classes import request_of, skip_reason
from gardenbus.scheduling.group_index import GroupIndex
from gardenbus.scheduling.results import Assignment
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.snapshot import Landscape, Snapshot
from gardenbus.scheduling.usage_index import UsageIndex
from gardenbus.scheduling.user_filters import SeedFilter

T = TypeVar("T")


class SimulatedAssignment(msgspec.Struct, frozen=True):
    """The result for one pending shoot (`<ns>/<name>`): its seed, or why it has none."""

    shoot: str
    seed: str | None
    message: str | None


class Profiles(NamedTuple):
    """Profiles by the name of their scheduler; `for_all` schedules all shoots, whichever scheduler they name."""

    by_name: Sequence[SchedulingProfile] = ()
    for_all: SchedulingProfile | None = None


NO_PROFILES = Profiles()


def simulate(
    documents: Iterable[Document],
    strategy: str = SAME_REGION,
    filters: Sequence[SeedFilter] = (),
    scheduler_name: str = DEFAULT_SCHEDULER,
    profiles: Profiles = NO_PROFILES,
) -> list[SimulatedAssignment]:
    """Place every shoot without seed, in the order given, each assignment counting for the next.

    `documents` are manifests (Lists are opened). Shoots of a scheduler without a profile are not placed, but for those
    of `scheduler_name`, which are placed by the strategy. A manifest that cannot be read takes part as far as possible:
    a seed is never chosen, a shoot is never placed, and anything else is as if it were not there. Raises ValueError for
    a strategy that there is not.
    """
    if strategy not in STRATEGIES:
        raise ValueError(f"{strategy!r} is no strategy; there are {', '.join(STRATEGIES)}")
    opened = _admitted(list(opened_lists(documents)))
    snapshot = snapshot_of(opened, strategy, filters)
    choice = _Landscapes(snapshot, scheduler_name, profiles)
    assignments: list[SimulatedAssignment] = []
    for document in of_kind(opened, "Shoot"):
        if section(document, "spec").get("seedName"):
            continue
        seed, message = _placed(document, choice)
        assignments.append(SimulatedAssignment(qualified_name(document), seed, message))
    return assignments


def snapshot_of(
    documents: Sequence[Document], strategy: str = SAME_REGION, filters: Sequence[SeedFilter] = ()
) -> Snapshot:
    """The landscape of some manifests, with the usage that their shoots make; later ones replace earlier ones."""
    landscape = Landscape(
        seeds=[SeedCandidate.of(document) for document in of_kind(documents, "Seed")],
        cloudprofiles=_views(documents, "CloudProfile", CloudProfile),
        namespaced_cloudprofiles=_views(documents, "NamespacedCloudProfile", NamespacedCloudProfile),
        region_configmaps=_views(documents, "ConfigMap", RegionConfigMap),
        projects=_views(documents, "Project", Project),
        strategy=strategy,
        filters=filters,
    )
    return Snapshot(landscape, UsageIndex(usage_after(documents), _requested(documents)), groups_of(documents))


def _admitted(documents: Sequence[Document]) -> list[Document]:
    """The manifests, with the requirements of shoots resolved as admission would do it now."""
    projects = {
        str(section(project, "spec").get("namespace") or f"garden-{qualified_name(project)[1:]}"): project
        for project in reversed(of_kind(documents, "Project"))
    }
    return [
        with_resolved(document, projects.get(str(section(document, "metadata").get("namespace") or "")))
        if document.get("kind") == "Shoot"
        else document
        for document in documents
    ]


def _requested(documents: Iterable[Document]) -> Mapping[str, Mapping[str, int]]:
    """Sums that the placed shoots of each seed request."""
    requested: dict[str, Counter[str]] = {}
    for shoot in of_kind(documents, "Shoot"):
        if requests := resolved_of(shoot).requests:
            for seed in seeds_of(shoot):
                requested.setdefault(seed, Counter()).update(dict(requests))
    return requested


def groups_of(documents: Iterable[Document]) -> GroupIndex:
    """The groups of the placed shoots."""
    groups = GroupIndex()
    for shoot in of_kind(documents, "Shoot"):
        if rules := resolved_of(shoot).group_rules:
            for seed in seeds_of(shoot):
                groups.assume(str(section(shoot, "metadata").get("namespace") or ""), rules, seed)
    return groups


def usage_after(documents: Iterable[Document], assignments: Iterable[SimulatedAssignment] = ()) -> Counter[str]:
    """Shoots per seed once some have been assigned; a shoot counts once on each seed that its spec or status names."""
    chosen = {each.shoot: each.seed for each in assignments if each.seed is not None}
    usage: Counter[str] = Counter()
    for shoot in of_kind(documents, "Shoot"):
        usage.update(seeds_of(shoot) | {seed for seed in [chosen.get(qualified_name(shoot))] if seed})
    return usage


class _Landscapes:
    """The landscape by the profile of a shoot; all share the usage."""

    def __init__(self, snapshot: Snapshot, scheduler_name: str, profiles: Profiles) -> None:
        self._scheduler_name = scheduler_name
        self._for_all = profiles.for_all
        given = {each.scheduler_name: each for each in profiles.by_name}
        landscape = snapshot.landscape
        self._snapshots = {
            name: msgspec.structs.replace(snapshot, landscape=landscape.with_profile(each))
            for name, each in given.items()
        }
        self._snapshots.setdefault(scheduler_name, snapshot)
        if self._for_all is not None:
            of_all = landscape.with_profile(self._for_all)
            self._snapshots[scheduler_name] = msgspec.structs.replace(snapshot, landscape=of_all)

    def of(self, shoot: Shoot) -> tuple[Snapshot, str]:
        """The snapshot for a shoot, and the reason why it is not placed."""
        name = shoot.scheduler_name
        if self._for_all is None and name in self._snapshots:
            return self._snapshots[name], skip_reason(shoot, name)
        responsible = name if self._for_all is not None else self._scheduler_name
        return self._snapshots[self._scheduler_name], skip_reason(shoot, responsible)


def _placed(document: Document, choice: _Landscapes) -> tuple[str | None, str | None]:
    try:
        shoot = Shoot.from_document(document)
    except InvalidResource as error:
        return None, f"the manifest cannot be read: {error.message}"
    snapshot, reason = choice.of(shoot)
    if reason:
        return None, f"not placed: {reason}"
    landscape = snapshot.landscape
    request = request_of(shoot, document, landscape.filters, reads_purpose=landscape.reads_purpose)
    result = decide(request, snapshot)
    if isinstance(result, Assignment):
        if result.seed not in seeds_of(document):
            snapshot.assume(result.seed, request.requests)
            snapshot.groups.assume(request.constraints.namespace, request.rules, result.seed)
        return result.seed, None
    return None, result.message


def seeds_of(shoot: Document) -> set[str]:
    """The seeds that a shoot is on: the one of its spec and the one of its status, which differ while it moves."""
    seeds = (section(shoot, part).get("seedName") for part in ("spec", "status"))
    return {seed for seed in seeds if isinstance(seed, str) and seed}


def of_kind(documents: Iterable[Document], kind: str) -> list[Document]:
    """The manifests of a kind; of several with one name the last."""
    return list({qualified_name(document): document for document in documents if document.get("kind") == kind}.values())


def qualified_name(document: Document) -> str:
    """`<namespace>/<name>`."""
    metadata = section(document, "metadata")
    return f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}"


def _views(documents: Iterable[Document], kind: str, view: type[T]) -> list[T]:
    views: list[T] = []
    for document in of_kind(documents, kind):
        try:
            views.append(read_view(document, view))
        except InvalidResource:
            continue
    return views
