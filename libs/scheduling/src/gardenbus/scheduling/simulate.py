"""Scheduling of a whole landscape of manifests, offline: the same decisions as the live service takes."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar, cast

import msgspec

from gardenbus.common.errors import InvalidResource
from gardenbus.common.resources.cloudprofiles import CloudProfile, NamespacedCloudProfile, RegionConfigMap
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.projects import Project
from gardenbus.common.resources.shoots import DEFAULT_SCHEDULER, Shoot
from gardenbus.common.resources.views import mapping_or_empty, read_view
from gardenbus.scheduling.landscape import SAME_REGION, STRATEGIES, Landscape, SeedCandidate, Snapshot
from gardenbus.scheduling.outcome import Placement
from gardenbus.scheduling.placement import decide
from gardenbus.scheduling.request import request_of, skipped_because
from gardenbus.scheduling.tally import Tally
from gardenbus.scheduling.user_filters import SeedFilter

T = TypeVar("T")


class SimulatedPlacement(msgspec.Struct, frozen=True):
    """What became of one pending shoot (`<ns>/<name>`): its seed, or why it has none."""

    shoot: str
    seed: str | None
    message: str | None


def simulate(
    documents: Iterable[Document],
    strategy: str = SAME_REGION,
    filters: Sequence[SeedFilter] = (),
    scheduler_name: str = DEFAULT_SCHEDULER,
) -> list[SimulatedPlacement]:
    """Place every shoot without seed, in the order given, each placement counting for the next.

    `documents` are manifests (Lists are opened). A manifest that cannot be read takes part as far as possible: a seed
    is never chosen, a shoot is never placed, and anything else is as if it were not there. Raises ValueError for a
    strategy that there is not.
    """
    if strategy not in STRATEGIES:
        raise ValueError(f"{strategy!r} is no strategy; there are {', '.join(STRATEGIES)}")
    opened = list(opened_lists(documents))
    snapshot = snapshot_of(opened, strategy, filters)
    placements: list[SimulatedPlacement] = []
    for document in opened:
        if document.get("kind") != "Shoot" or mapping_or_empty(document.get("spec")).get("seedName"):
            continue
        seed, message = _placed(document, snapshot, scheduler_name)
        placements.append(SimulatedPlacement(_name_of(document), seed, message))
    return placements


def opened_lists(documents: Iterable[Document]) -> Iterator[Document]:
    """The manifests, those inside of Lists one by one; what is no manifest is left out."""
    for document in documents:
        if not isinstance(document.get("kind"), str):
            continue
        if document["kind"].endswith("List") and isinstance(document.get("items"), list):
            entries = cast("list[Any]", document["items"])
            yield from opened_lists(cast("Document", entry) for entry in entries if isinstance(entry, dict))
        else:
            yield document


def snapshot_of(
    documents: Sequence[Document], strategy: str = SAME_REGION, filters: Sequence[SeedFilter] = ()
) -> Snapshot:
    """The landscape of some manifests, with the usage that their shoots make; later ones replace earlier ones."""
    usage: dict[str, int] = {}
    for shoot in _of_kind(documents, "Shoot"):
        for seed in _seeds_of(shoot):
            usage[seed] = usage.get(seed, 0) + 1
    landscape = Landscape(
        seeds=[SeedCandidate.of(document) for document in _of_kind(documents, "Seed")],
        cloudprofiles=_views(documents, "CloudProfile", CloudProfile),
        namespaced_cloudprofiles=_views(documents, "NamespacedCloudProfile", NamespacedCloudProfile),
        region_configmaps=_views(documents, "ConfigMap", RegionConfigMap),
        projects=_views(documents, "Project", Project),
        strategy=strategy,
        filters=filters,
    )
    return Snapshot(landscape, Tally(usage))


def _placed(document: Document, snapshot: Snapshot, scheduler_name: str) -> tuple[str | None, str | None]:
    try:
        shoot = Shoot.from_document(document)
    except InvalidResource as error:
        return None, f"the manifest cannot be read: {error.message}"
    if reason := skipped_because(shoot, scheduler_name):
        return None, f"not placed: {reason}"
    outcome = decide(request_of(shoot, document, snapshot.landscape.filters), snapshot)
    if isinstance(outcome, Placement):
        snapshot.place(outcome.seed)
        return outcome.seed, None
    return None, outcome.message


def _seeds_of(shoot: Document) -> set[str]:
    seeds = (mapping_or_empty(shoot.get(part)).get("seedName") for part in ("spec", "status"))
    return {seed for seed in seeds if isinstance(seed, str) and seed}


def _of_kind(documents: Iterable[Document], kind: str) -> list[Document]:
    return list({_name_of(document): document for document in documents if document.get("kind") == kind}.values())


def _views(documents: Iterable[Document], kind: str, view: type[T]) -> list[T]:
    views: list[T] = []
    for document in _of_kind(documents, kind):
        try:
            views.append(read_view(document, view))
        except InvalidResource:
            continue
    return views


def _name_of(document: Document) -> str:
    metadata: Any = mapping_or_empty(document.get("metadata"))
    return f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}"
