"""What services and the dashboard read of a stored manifest; one that was admitted raises nothing."""

from collections.abc import Callable, Mapping

from gardenbus.common.api.document import Document
from gardenbus.common.api.fleet.member_clusters import MemberCluster
from gardenbus.common.api.fleet.overrides import ClusterOverride, NamespacedOverride
from gardenbus.common.api.fleet.placement_parts import DisruptionBudget, Eviction
from gardenbus.common.api.fleet.placements import Placement
from gardenbus.common.api.fleet.rows import cluster_row, placement_row
from gardenbus.common.api.garden.managed_seed_sets import (
    replica_managed_seed,
    replica_shoot,
    revision_hash,
    template_seed,
    templates_of,
)
from gardenbus.common.api.garden.managed_seeds import capacity_of, seed_of
from gardenbus.common.api.garden.rows import autoscaler_row, seed_row, set_row, shoot_row
from gardenbus.common.api.garden.seed_autoscalers import SeedAutoscaler
from gardenbus.common.api.garden.seeds import Seed, is_ready
from gardenbus.common.api.garden.shoot_networks import ranges_of
from gardenbus.common.api.garden.shoots import Shoot
from gardenbus.common.errors import GardenbusError
from gardenbus.scheduling.equivalence_classes import descriptor, equivalence_class, request_from_descriptor, request_of
from gardenbus.scheduling.seed_candidates import SeedCandidate
from tests.support.full_manifests import read_by_everybody

Read = Callable[[Document], object]


def _shoot(document: Document) -> None:
    shoot = Shoot.from_document(document)
    ranges_of(shoot)
    request = request_of(shoot, document)
    request_from_descriptor(descriptor(request))
    equivalence_class(request)
    shoot_row(document)


def _seed(document: Document) -> None:
    is_ready(Seed.from_document(document))
    if unreadable := SeedCandidate.of(document).unreadable:
        raise Unreadable(unreadable)
    seed_row(document)


def _managed_seed(document: Document) -> None:
    capacity_of(document)
    Seed.from_document(seed_of(document))


def _managed_seed_set(document: Document) -> None:
    revision_hash(templates_of(document))
    replica_shoot(document, "a-0")
    replica_managed_seed(document, "a-0")
    Seed.from_document(template_seed(document, "a-0"))
    set_row(document)


def _autoscaler(document: Document) -> None:
    SeedAutoscaler.from_document(document)
    autoscaler_row(document)


def _placement(document: Document) -> None:
    Placement.from_document(document)
    placement_row(document)


def _cluster(document: Document) -> None:
    MemberCluster.from_document(document)
    cluster_row(document)


_READERS: Mapping[str, Read] = {
    "Shoot": _shoot,
    "Seed": _seed,
    "ManagedSeed": _managed_seed,
    "ManagedSeedSet": _managed_seed_set,
    "SeedAutoscaler": _autoscaler,
    "ClusterResourcePlacement": _placement,
    "ResourcePlacement": _placement,
    "MemberCluster": _cluster,
    "ClusterResourceOverride": ClusterOverride.from_document,
    "ResourceOverride": NamespacedOverride.from_document,
    "ClusterResourcePlacementEviction": Eviction.from_document,
    "ClusterResourcePlacementDisruptionBudget": DisruptionBudget.from_document,
}


class Unreadable(AssertionError):
    """Something was admitted that a service cannot read."""


def read_by_services(document: Document) -> None:
    """Read it as they do. Raises Unreadable also for what they would reject: it was admitted."""
    try:
        read_by_everybody(document)
        if read := _READERS.get(document["kind"]):
            read(document)
    except GardenbusError as error:
        raise Unreadable(f"{document['kind']}: {error.message}") from error
