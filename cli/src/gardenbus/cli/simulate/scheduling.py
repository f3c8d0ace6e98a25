"""Simulated scheduling of a whole landscape of manifests: the same decisions as the live service makes."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from gardenbus.common.api.document import Document, opened_lists, section
from gardenbus.common.api.garden.cloudprofiles import CloudProfile, NamespacedCloudProfile, RegionConfigMap
from gardenbus.common.api.garden.projects import Project
from gardenbus.common.api.garden.shoots import DEFAULT_SCHEDULER, Shoot
from gardenbus.common.api.garden.strategies import SAME_REGION, STRATEGIES
from gardenbus.common.api.views import read_view
from gardenbus.common.errors import InvalidResource
from gardenbus.scheduling.assignment import decide
from gardenbus.scheduling.equivalence_classes import request_of, skip_reason
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


def simulate(
    documents: Iterable[Document],
    strategy: str = SAME_REGION,
    filters: Sequence[SeedFilter] = (),
    scheduler_name: str = DEFAULT_SCHEDULER,
) -> list[SimulatedAssignment]:
    """Place every shoot without seed, in the order given, each assignment counting for the next.

    `documents` are manifests (Lists are opened). A manifest that cannot be read takes part as far as possible: a seed
    is never chosen, a shoot is never placed, and anything else is as if it were not there. Raises ValueError for a
    strategy that there is not.
    """
    if strategy not in STRATEGIES:
        raise ValueError(f"{strategy!r} is no strategy; there are {', '.join(STRATEGIES)}")
    opened = list(opened_lists(documents))
    snapshot = snapshot_of(opened, strategy, filters)
    assignments: list[SimulatedAssignment] = []
    for document in of_kind(opened, "Shoot"):
        if section(document, "spec").get("seedName"):
            continue
        seed, message = _placed(document, snapshot, scheduler_name)
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
    return Snapshot(landscape, UsageIndex(usage_after(documents)))


def usage_after(documents: Iterable[Document], assignments: Iterable[SimulatedAssignment] = ()) -> Counter[str]:
    """Shoots per seed once some have been assigned; a shoot counts once on each seed that its spec or status names."""
    chosen = {each.shoot: each.seed for each in assignments if each.seed is not None}
    usage: Counter[str] = Counter()
    for shoot in of_kind(documents, "Shoot"):
        usage.update(seeds_of(shoot) | {seed for seed in [chosen.get(qualified_name(shoot))] if seed})
    return usage


def _placed(document: Document, snapshot: Snapshot, scheduler_name: str) -> tuple[str | None, str | None]:
    try:
        shoot = Shoot.from_document(document)
    except InvalidResource as error:
        return None, f"the manifest cannot be read: {error.message}"
    if reason := skip_reason(shoot, scheduler_name):
        return None, f"not placed: {reason}"
    result = decide(request_of(shoot, document, snapshot.landscape.filters), snapshot)
    if isinstance(result, Assignment):
        if result.seed not in seeds_of(document):
            snapshot.assume(result.seed)
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
