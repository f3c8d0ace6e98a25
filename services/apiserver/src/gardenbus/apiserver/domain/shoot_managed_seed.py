"""Rules for changes of a shoot with a ManagedSeed. Source: Gardener's admission plugin ShootManagedSeed."""

from collections.abc import Iterator, Sequence

from gardenbus.apiserver.domain.managed_seeds import has_nginx, has_vertical_autoscaler
from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.apiserver.domain.related_objects import ManagedSeedOfShootQuery, RelatedObjects, RelatedQuery
from gardenbus.apiserver.domain.seeds_in_use import zones_of
from gardenbus.apiserver.domain.validation.field_cursor import invalid
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import key_of_document, name_of, namespace_of
from gardenbus.common.api.garden.managed_seeds import seed_template_of, zones_of_workers
from gardenbus.common.api.keys import GARDEN_NAMESPACE
from gardenbus.common.errors import FieldProblem
from gardenbus.common.ports.store import WritePrecondition

_ON_IT = "(the ManagedSeed {managed_seed} stands on this shoot)"
_INGRESS = RejectionMessage(f"must stay false, as a seed brings its own ingress {_ON_IT}")
_AUTOSCALER = RejectionMessage(f"must stay true, as the seed relies on it {_ON_IT}")
_RANGE = RejectionMessage(f"{{nodes}} stays, as it is the seed's range too {_ON_IT}")
_ZONE = RejectionMessage(
    "zone {zones} cannot be left, as the seed is registered in it: take it out of the zones of the ManagedSeed first"
    f" {_ON_IT}"
)
_PUT_ON = RejectionMessage("{shoot}: a ManagedSeed was put on it meanwhile: apply it again")
CHANGE_REJECTIONS = (_INGRESS, _AUTOSCALER, _RANGE, _ZONE, _PUT_ON)


def managed_seed_of_shoot_queries(shoot: Document, old: Document | None) -> Sequence[RelatedQuery]:
    """Query of the ManagedSeed of a shoot, only when a change affects it."""
    return (ManagedSeedOfShootQuery(key_of_document(shoot)),) if old is not None and _affects_seed(shoot, old) else ()


def admit_shoot_of_managed_seed(shoot: Document, old: Document | None, related: RelatedObjects) -> None:
    """Check a change of a shoot against the ManagedSeed on it. Raises InvalidResource."""
    key = key_of_document(shoot)
    managed_seed = related.managed_seeds.get(key)
    if managed_seed is None or old is None or not _affects_seed(shoot, old):
        return
    if problems := list(_problems(shoot, old, managed_seed, name_of(managed_seed))):
        raise invalid(problems)


def guards_of_shoot_of_managed_seed(
    shoot: Document, old: Document | None, related: RelatedObjects
) -> Sequence[WritePrecondition]:
    """Conditions of such a change of a shoot without ManagedSeed: it has none when it is written either."""
    if old is None:
        return ()
    key = key_of_document(shoot)
    if key in related.managed_seeds or not _affects_seed(shoot, old):
        return ()
    return (WritePrecondition("references", key.stored, _PUT_ON(shoot=key)),)


def _affects_seed(shoot: Document, old: Document) -> bool:
    if namespace_of(shoot) != GARDEN_NAMESPACE or shoot.get("spec") == old.get("spec"):
        return False
    return any(True for _ in _problems(shoot, old, None))


def _problems(shoot: Document, old: Document, managed_seed: Document | None, name: str = "") -> Iterator[FieldProblem]:
    """Problems that a change makes for the seed; without its ManagedSeed every zone may be the seed's."""
    if has_nginx(shoot) and not has_nginx(old):
        yield FieldProblem("spec.addons.nginxIngress.enabled", _INGRESS(managed_seed=name))
    if has_vertical_autoscaler(old) and not has_vertical_autoscaler(shoot):
        yield FieldProblem("spec.kubernetes.verticalPodAutoscaler.enabled", _AUTOSCALER(managed_seed=name))
    nodes, before = (section(one, "spec", "networking").get("nodes") for one in (shoot, old))
    if before and nodes != before:
        yield FieldProblem("spec.networking.nodes", _RANGE(nodes=before, managed_seed=name))
    kept, had = set(zones_of_workers(shoot)), zones_of_workers(old)
    registered = zones_of(section(seed_template_of(managed_seed), "spec")) if managed_seed is not None else had
    registered = set(registered)
    if gone := [zone for zone in had if zone not in kept and zone in registered]:
        yield FieldProblem("spec.provider.workers", _ZONE(zones=", ".join(gone), managed_seed=name))
