"""Admission of ManagedSeeds: rules for the shoot, the seed's template, and changes with shoots on the seed.

Source: Gardener's admission plugin ManagedSeed (`plugin/pkg/managedseed/validator`) and, for a Gardenlet of the same
name, ResourceReferenceManager.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from gardenbus.apiserver.domain.rejection_messages import (
    CHANGED_MEANWHILE,
    NOT_THERE,
    SAME_SEED,
    RejectionMessage,
    unchanged,
)
from gardenbus.apiserver.domain.related_objects import (
    ManagedSeedOfShootQuery,
    ObjectQuery,
    RelatedObjects,
    RelatedQuery,
    SeedOfShootQuery,
)
from gardenbus.apiserver.domain.seeds_in_use import REMOVALS, removals_in_use, shoots_on_seed_queries, zones_of
from gardenbus.apiserver.domain.validation.field_cursor import invalid
from gardenbus.apiserver.domain.validation.workerless import is_workerless
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import is_deleting, name_of, namespace_of
from gardenbus.common.api.garden.managed_seeds import (
    ingress_domain_of,
    seed_template_of,
    template_path,
    with_shoot_defaults,
    zones_of_workers,
)
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.errors import FieldProblem, Forbidden
from gardenbus.common.ports.store import WritePrecondition

RANGES = ("nodes", "pods", "services")

_SECOND = RejectionMessage(
    "the ManagedSeed {managed_seed} stands on {shoot} already, and one is all it bears: name another shoot"
)
_DELETING = RejectionMessage("{shoot} is being deleted: name another shoot")
_NO_DOMAIN = RejectionMessage(
    "{shoot} has no spec.dns.domain, below which the seed's ingress would be: state one, or wait until the shoot has a"
    " seed, if that has default domains"
)
_NGINX = RejectionMessage("{shoot} has spec.addons.nginxIngress enabled, and a seed brings its own: turn it off")
_WORKERLESS = RejectionMessage("{shoot} has no workers that a seed could run on: add some to spec.provider.workers")
_NO_AUTOSCALER = RejectionMessage(
    "{shoot} needs spec.kubernetes.verticalPodAutoscaler.enabled, for the seed: set it to true"
)
_DIFFERS = RejectionMessage(
    "must be {own}, as its shoot has it, not {stated}: leave it out, it is taken over from the shoot"
)
_NOT_YET = RejectionMessage("its shoot does not have it yet: leave it out, it is taken over from the shoot")
_STRANGE = RejectionMessage("no worker of the shoot stands in {zones}: add workers there first, or leave it out")
MANAGED_SEED_REJECTIONS = (
    *(SAME_SEED, NOT_THERE, _DELETING, _SECOND, _NO_DOMAIN, _NGINX, _WORKERLESS, _NO_AUTOSCALER),
    *(_DIFFERS, _NOT_YET, _STRANGE, *REMOVALS, CHANGED_MEANWHILE),
)


def managed_seed_queries(managed_seed: Document, old: Document | None) -> Sequence[RelatedQuery]:
    """Queries of the shoot and its seed, a Gardenlet of the same name, and the shoots on the seed."""
    shoot = shoot_key(managed_seed)
    if shoot is None or not _is_decided_anew(managed_seed, old):
        return ()
    queries: list[RelatedQuery] = [ObjectQuery(shoot), SeedOfShootQuery(shoot)]
    name = name_of(managed_seed)
    if old is None:
        return [*queries, ObjectQuery(namesake(managed_seed)), ManagedSeedOfShootQuery(shoot)]
    return [*queries, *shoots_on_seed_queries(name, _seed_spec(managed_seed), _seed_spec(old))]


def with_defaults_of_its_shoot(managed_seed: Document, old: Document | None, related: RelatedObjects) -> Document:
    """The ManagedSeed with defaults from its shoot."""
    key = shoot_key(managed_seed)
    shoot = related.objects.get(key) if key else None
    if shoot is None or not _is_decided_anew(managed_seed, old):
        return managed_seed
    host = ObjectKey("seed", "", str(section(shoot, "spec").get("seedName") or ""))
    return with_shoot_defaults(managed_seed, shoot, related.objects.get(host))


def admit_managed_seed(
    managed_seed: Document, old: Document | None, related: RelatedObjects, *, is_domain_needed: bool = True
) -> None:
    """Check a valid ManagedSeed against its shoot and the shoots on its seed. Raises Forbidden or InvalidResource.

    Without `is_domain_needed` a shoot that has no seed yet may get its domain later, with the seed.
    """
    key = shoot_key(managed_seed)
    if key is None or not _is_decided_anew(managed_seed, old):
        return
    admit_name(managed_seed, old, related)
    shoot = related.objects.get(key)
    problems = [*_shoot_problems(key, shoot, old, is_domain_needed=is_domain_needed)]
    managed_seeds = name_of(related.managed_seeds.get(key, {}))
    if old is None and managed_seeds not in ("", name_of(managed_seed)):
        problems.append(FieldProblem("spec.shoot.name", _SECOND(managed_seed=managed_seeds, shoot=key)))
    if shoot is not None:
        problems += _template_problems(managed_seed, old, shoot)
    if old is not None:
        path = ".".join(("spec", *(template_path(managed_seed) or ()), "spec"))
        shoots_on = related.shoots_on.get(name_of(managed_seed), ())
        problems += removals_in_use(path, _seed_spec(managed_seed), _seed_spec(old), shoots_on)
    if problems:
        raise invalid(problems)


def guards_of_managed_seed(
    managed_seed: Document, old: Document | None, related: RelatedObjects
) -> Sequence[WritePrecondition]:
    """Conditions of the write: the shoot as it was read, and no Gardenlet of the same name."""
    key = shoot_key(managed_seed)
    shoot = related.objects.get(key) if key else None
    if key is None or shoot is None or not _is_decided_anew(managed_seed, old):
        return ()
    version = section(shoot, "metadata").get("resourceVersion")
    preconditions = [unchanged(key, int(version))] if version else []
    return [*preconditions, unchanged(namesake(managed_seed), 0)] if old is None else preconditions


def shoot_key(managed_seed: Document) -> ObjectKey | None:
    """The shoot of a ManagedSeed; None when it names none."""
    name: Any = section(managed_seed, "spec", "shoot").get("name")
    namespace = namespace_of(managed_seed) or GARDEN_NAMESPACE
    return ObjectKey("shoot", namespace, name) if isinstance(name, str) and name else None


def namesake(document: Document) -> ObjectKey:
    """The object that would be the same seed: the Gardenlet of a ManagedSeed's name, and the other way round."""
    kind = "gardenlet" if document.get("kind") == "ManagedSeed" else "managedseed"
    return ObjectKey(kind, namespace_of(document) or GARDEN_NAMESPACE, name_of(document))


def admit_name(document: Document, old: Document | None, related: RelatedObjects) -> None:
    """A Gardenlet must not be called as a ManagedSeed is. Raises Forbidden."""
    other = namesake(document)
    if old is None and other in related.objects:
        raise Forbidden(SAME_SEED(object=other, seed=other.name))


def has_vertical_autoscaler(shoot: Document) -> bool:
    """True when the shoot's vertical pod autoscaler is enabled."""
    return section(shoot, "spec", "kubernetes", "verticalPodAutoscaler").get("enabled") is True


def has_nginx(shoot: Document) -> bool:
    """True when the shoot's addon nginxIngress is enabled."""
    return section(shoot, "spec", "addons", "nginxIngress").get("enabled") is True


def _is_decided_anew(managed_seed: Document, old: Document | None) -> bool:
    """True unless the object is being deleted or its spec stays: then nothing is checked."""
    if old is None:
        return True
    return not is_deleting(old) and managed_seed.get("spec") != old.get("spec")


def _shoot_problems(
    key: ObjectKey, shoot: Document | None, old: Document | None, *, is_domain_needed: bool
) -> Iterator[FieldProblem]:
    """Reasons why a shoot cannot be a seed."""
    field = "spec.shoot.name"
    if shoot is None:
        yield FieldProblem(field, NOT_THERE(object=key))
        return
    if old is None and is_deleting(shoot):
        yield FieldProblem(field, _DELETING(shoot=key))
    is_placed = bool(section(shoot, "spec").get("seedName"))
    if not ingress_domain_of(shoot) and (is_domain_needed or is_placed):
        yield FieldProblem(field, _NO_DOMAIN(shoot=key))
    if has_nginx(shoot):
        yield FieldProblem(field, _NGINX(shoot=key))
    if is_workerless(section(shoot, "spec")):
        yield FieldProblem(field, _WORKERLESS(shoot=key))
    elif not has_vertical_autoscaler(shoot):
        yield FieldProblem(field, _NO_AUTOSCALER(shoot=key))


def _template_problems(managed_seed: Document, old: Document | None, shoot: Document) -> Iterator[FieldProblem]:
    """Fields of the seed's template that contradict the shoot."""
    path = ".".join(("spec", *(template_path(managed_seed) or ()), "spec"))
    spec, of_shoot = _seed_spec(managed_seed), section(shoot, "spec")
    provider, networks, ranges = section(spec, "provider"), section(spec, "networks"), section(of_shoot, "networking")
    compared = [
        ("ingress.domain", section(spec, "ingress").get("domain"), ingress_domain_of(shoot) or None),
        ("provider.type", provider.get("type"), section(of_shoot, "provider").get("type")),
        ("provider.region", provider.get("region"), of_shoot.get("region")),
        *((f"networks.{name}", networks.get(name), ranges.get(name)) for name in RANGES),
    ]
    for field, stated, own in compared:
        if stated != own and stated not in (None, ""):
            where = f"{path}.{field}"
            differs = FieldProblem(where, _DIFFERS(own=repr(own), stated=repr(stated)))
            yield differs if own else FieldProblem(where, _NOT_YET())
    previous = set(zones_of(_seed_spec(old))) if old is not None else set[str]()
    there = set(zones_of_workers(shoot)) | previous
    if strange := [zone for zone in zones_of(spec) if zone not in there]:
        yield FieldProblem(f"{path}.provider.zones", _STRANGE(zones=", ".join(strange)))


def _seed_spec(managed_seed: Document) -> Document:
    return section(seed_template_of(managed_seed), "spec")
