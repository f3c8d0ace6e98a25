"""Admission of ManagedSeeds: what the shoot must be like, what its seed may say, what its shoots hold in place.

Source: Gardener's admission plugin ManagedSeed (`plugin/pkg/managedseed/validator`) and, for a Gardenlet of the same
name, ResourceReferenceManager.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from gardenbus.apiserver.decide.facts import FactQuery, Facts, HostQuery, ObjectQuery, StandingQuery
from gardenbus.apiserver.decide.used_seeds import guests_needed, losses_of_guests, zones_of
from gardenbus.common.errors import FieldProblem, Forbidden, InvalidResource
from gardenbus.common.ports.store import Guard
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.resources.managed_seeds import (
    ingress_domain_of,
    seed_template_of,
    template_place,
    with_shoot_defaults,
    zones_of_workers,
)

RANGES = ("nodes", "pods", "services")


def facts_of_managed_seed(managed_seed: Document, old: Document | None) -> Sequence[FactQuery]:
    """What is asked about: the shoot and its seed, a Gardenlet of the same name, who is on the seed."""
    shoot = shoot_key(managed_seed)
    if shoot is None or not _is_decided_anew(managed_seed, old):
        return ()
    queries: list[FactQuery] = [ObjectQuery(shoot), HostQuery(shoot)]
    name = _name(managed_seed)
    if old is None:
        return [*queries, ObjectQuery(namesake(managed_seed)), StandingQuery(shoot)]
    return [*queries, *guests_needed(name, _seed_spec(managed_seed), _seed_spec(old))]


def with_its_shoot(managed_seed: Document, old: Document | None, facts: Facts) -> Document:
    """The ManagedSeed with what its seed takes over from the shoot."""
    key = shoot_key(managed_seed)
    shoot = facts.objects.get(key) if key else None
    if shoot is None or not _is_decided_anew(managed_seed, old):
        return managed_seed
    host = ObjectKey("seed", "", str(section(shoot, "spec").get("seedName") or ""))
    return with_shoot_defaults(managed_seed, shoot, facts.objects.get(host))


def admit_managed_seed(
    managed_seed: Document, old: Document | None, facts: Facts, *, is_domain_needed: bool = True
) -> None:
    """Check a valid ManagedSeed against its shoot and the shoots on its seed. Raises Forbidden or InvalidResource.

    Without `is_domain_needed` a shoot that has no seed yet may get its domain later, with the seed.
    """
    key = shoot_key(managed_seed)
    if key is None or not _is_decided_anew(managed_seed, old):
        return
    other = namesake(managed_seed)
    if old is None and other in facts.objects:
        raise Forbidden(f"metadata.name: {other} is there, and both would be the seed {other.name}: take another name")
    shoot = facts.objects.get(key)
    problems = [*_shoot_problems(key, shoot, old, is_domain_needed=is_domain_needed)]
    standing = _name(facts.standing.get(key, {}))
    if old is None and standing not in ("", _name(managed_seed)):
        message = f"the ManagedSeed {standing} stands on {key} already, and one is all it bears: name another shoot"
        problems.append(FieldProblem("spec.shoot.name", message))
    if shoot is not None:
        problems += _template_problems(managed_seed, old, shoot)
    if old is not None:
        path = ".".join(("spec", *(template_place(managed_seed) or ()), "spec"))
        guests = facts.guests.get(_name(managed_seed), ())
        problems += losses_of_guests(path, _seed_spec(managed_seed), _seed_spec(old), guests)
    if problems:
        listed = "; ".join(f"{problem.field}: {problem.message}" for problem in problems)
        raise InvalidResource(f"ManagedSeed {key.namespace}/{_name(managed_seed)}: {listed}", tuple(problems))


def guards_of_managed_seed(managed_seed: Document, old: Document | None, facts: Facts) -> Sequence[Guard]:
    """What must still stand when a ManagedSeed is written: its shoot as it was read, and no Gardenlet of its name."""
    key = shoot_key(managed_seed)
    shoot = facts.objects.get(key) if key else None
    if key is None or shoot is None or not _is_decided_anew(managed_seed, old):
        return ()
    version = section(shoot, "metadata").get("resourceVersion")
    guards = [_unchanged(key, int(version))] if version else []
    return [*guards, _unchanged(namesake(managed_seed), 0)] if old is None else guards


def shoot_key(managed_seed: Document) -> ObjectKey | None:
    """The shoot that a ManagedSeed stands on; None when it names none."""
    name: Any = section(managed_seed, "spec", "shoot").get("name")
    namespace = str(section(managed_seed, "metadata").get("namespace") or GARDEN_NAMESPACE)
    return ObjectKey("shoot", namespace, name) if isinstance(name, str) and name else None


def namesake(document: Document) -> ObjectKey:
    """The object that would be the same seed: the Gardenlet of a ManagedSeed's name, and the other way round."""
    kind = "gardenlet" if document.get("kind") == "ManagedSeed" else "managedseed"
    return ObjectKey(kind, str(section(document, "metadata").get("namespace") or GARDEN_NAMESPACE), _name(document))


def admit_gardenlet(gardenlet: Document, old: Document | None, facts: Facts) -> None:
    """A Gardenlet must not be called as a ManagedSeed is. Raises Forbidden."""
    other = namesake(gardenlet)
    if old is None and other in facts.objects:
        raise Forbidden(f"metadata.name: {other} is there, and both would be the seed {other.name}: take another name")


def is_workerless(shoot: Document) -> bool:
    """Whether a shoot has no workers, and so nothing that a seed could run on."""
    workers = section(shoot, "spec", "provider").get("workers")
    return not (isinstance(workers, list) and workers)


def has_vertical_autoscaler(shoot: Document) -> bool:
    """Whether the shoot's vertical pod autoscaler is on."""
    return section(shoot, "spec", "kubernetes", "verticalPodAutoscaler").get("enabled") is True


def has_nginx(shoot: Document) -> bool:
    """Whether the shoot's addon nginxIngress is on."""
    return section(shoot, "spec", "addons", "nginxIngress").get("enabled") is True


def _is_decided_anew(managed_seed: Document, old: Document | None) -> bool:
    """Nothing is asked about one that is being deleted, or whose spec stays."""
    if old is None:
        return True
    return not section(old, "metadata").get("deletionTimestamp") and managed_seed.get("spec") != old.get("spec")


def _shoot_problems(
    key: ObjectKey, shoot: Document | None, old: Document | None, *, is_domain_needed: bool
) -> Iterator[FieldProblem]:
    """Why a shoot cannot be a seed."""
    field = "spec.shoot.name"
    if shoot is None:
        yield FieldProblem(field, f"{key} is not there: apply it first")
        return
    if old is None and section(shoot, "metadata").get("deletionTimestamp"):
        yield FieldProblem(field, f"{key} is being deleted: name another shoot")
    is_placed = bool(section(shoot, "spec").get("seedName"))
    if not ingress_domain_of(shoot) and (is_domain_needed or is_placed):
        fix = "state one, or wait until the shoot has a seed, if that has default domains"
        yield FieldProblem(field, f"{key} has no spec.dns.domain, below which the seed's ingress would be: {fix}")
    if has_nginx(shoot):
        yield FieldProblem(field, f"{key} has spec.addons.nginxIngress enabled, and a seed brings its own: turn it off")
    if is_workerless(shoot):
        yield FieldProblem(field, f"{key} has no workers that a seed could run on: add some to spec.provider.workers")
    elif not has_vertical_autoscaler(shoot):
        fix = "set it to true"
        yield FieldProblem(field, f"{key} needs spec.kubernetes.verticalPodAutoscaler.enabled, for the seed: {fix}")


def _template_problems(managed_seed: Document, old: Document | None, shoot: Document) -> Iterator[FieldProblem]:
    """What the seed's template says otherwise than the shoot."""
    path = ".".join(("spec", *(template_place(managed_seed) or ()), "spec"))
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
            wanted = (
                f"must be {own!r}, as its shoot has it, not {stated!r}" if own else "its shoot does not have it yet"
            )
            yield FieldProblem(f"{path}.{field}", f"{wanted}: leave it out, it is taken over from the shoot")
    known = set(zones_of(_seed_spec(old))) if old is not None else set[str]()
    there = set(zones_of_workers(shoot)) | known
    if strange := [zone for zone in zones_of(spec) if zone not in there]:
        message = f"no worker of the shoot stands in {', '.join(strange)}: add workers there first, or leave it out"
        yield FieldProblem(f"{path}.provider.zones", message)


def _seed_spec(managed_seed: Document) -> Document:
    return section(seed_template_of(managed_seed), "spec")


def _name(document: Document) -> str:
    return str(section(document, "metadata").get("name") or "")


def _unchanged(key: ObjectKey, version: int) -> Guard:
    return Guard("version", key.stored, f"{key} changed meanwhile", version=version)
