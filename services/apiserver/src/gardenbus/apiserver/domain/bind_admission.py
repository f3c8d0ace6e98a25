"""Admission of a bind by name.

The scheduler has checked these rules in its own choice; here a client has chosen. Visibility, readiness and region of
the seed are up to the client. A placed shoot is migrated under the same rules, and under those of api/migrating.

Source: Gardener's admission plugins ShootValidator and ShootDNS.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import name_of, namespace_of
from gardenbus.common.api.garden.feasibility import ANY_PROVIDER, restriction_problem, taint_problem, zonal_problem
from gardenbus.common.api.garden.migration_feasibility import migration_problems
from gardenbus.common.api.garden.projects import Project
from gardenbus.common.api.garden.scheduling_requirements import resolved_of, resolved_requirements
from gardenbus.common.api.garden.seeds import Seed, removal_owner, shoot_capacity
from gardenbus.common.api.garden.shoot_networks import network_problems, ranges_of
from gardenbus.common.api.garden.shoots import SeedSelector, Shoot
from gardenbus.common.api.garden.tolerations import allowed_by, effective_tolerations, unchecked_in
from gardenbus.common.api.views import read_view
from gardenbus.common.errors import Forbidden, InvalidResource

_NO_SEED = RejectionMessage("spec.seedName: there is no seed {seed}")
_NO_PROJECT = RejectionMessage(
    "metadata.namespace: {namespace} belongs to no Project: the shoot waits until one has it"
)
UNFEASIBLE = RejectionMessage("seed {seed} cannot take the shoot: {reasons}")
_GATED = RejectionMessage(
    "the shoot waits for the scheduling gates {gates}: take them out of schedulingGates before it gets a seed"
)
BIND_REJECTIONS = (_NO_SEED, _NO_PROJECT, UNFEASIBLE, _GATED)


def admit_binding(
    shoot: Document,
    seed: Document | None,
    *,
    project: Document | None,
    profile_spec: Document | None,
    usage: int | None = None,
) -> None:
    """Check that a seed is feasible for a shoot without seed. Raises Forbidden with every reason.

    The store checks capacity again when it binds; `usage` is for callers who have it.
    """
    name = str(section(shoot, "spec").get("seedName") or "") if seed is None else str(seed["metadata"]["name"])
    if seed is None:
        raise Forbidden(_NO_SEED(seed=name))
    if project is None:
        raise Forbidden(_NO_PROJECT(namespace=namespace_of(shoot)))
    if gates := resolved_of(shoot).gates:
        raise Forbidden(_GATED(gates=", ".join(gates)))
    reasons = list(_reasons(Shoot.from_document(shoot), seed, project, profile_spec))
    if usage is not None and (capacity := shoot_capacity(seed)) is not None and usage >= capacity:
        reasons.append(f"it already has the maximum number of shoots scheduled on it ({capacity})")
    if reasons:
        raise Forbidden(UNFEASIBLE(seed=name, reasons="; ".join(reasons)))


def admit_migration(
    shoot: Document,
    source: Document | None,
    target: Document,
    *,
    project: Document | None,
    profile_spec: Document | None,
) -> None:
    """Check that a placed shoot may be migrated to another seed: the rules of a bind, and those of a migration.

    `source` is its present seed, None when that Seed is missing. Raises Forbidden with every reason.
    """
    name = name_of(target)
    if project is None:
        raise Forbidden(f"metadata.namespace: {namespace_of(shoot)} belongs to no Project: the shoot stays where it is")
    reasons = list(_reasons(Shoot.from_document(shoot), target, project, profile_spec))
    if source is not None:
        reasons += migration_problems(shoot, source, target)
    if reasons:
        raise Forbidden(f"seed {name} cannot take the shoot over: {'; '.join(reasons)}")


def is_eligible(shoot: Document, seed: Document, *, project: Document | None, profile_spec: Document | None) -> bool:
    """True where a seed meets all that a bind requires of it, but for room and rules between shoots."""
    try:
        return next(_reasons(Shoot.from_document(shoot), seed, project, profile_spec), None) is None
    except InvalidResource:
        return False


def selector_problems(shoot: Shoot, seed: Seed) -> Iterator[str]:
    """Reasons why the shoot's own selector does not match the seed; here `*` is no wildcard."""
    selector = shoot.spec.seed_selector
    if selector is None:
        return
    if not _matches(selector, seed.metadata.labels):
        yield f"its labels do not match the seedSelector of the shoot ({selector.labels})"
    yield from provider_type_problems(selector, seed)


def provider_type_problems(selector: SeedSelector, seed: Seed) -> Iterator[str]:
    """Reasons why the provider types of the shoot do not match the seed."""
    if selector.provider_types and seed.spec.provider.type not in selector.provider_types:
        allowed = ", ".join(selector.provider_types)
        yield f"its provider type {seed.spec.provider.type} is none of those that the shoot selects ({allowed})"


def control_plane_problems(shoot: Shoot, seed: Seed) -> Iterator[str]:
    """Reasons why the seed cannot host the control plane of the shoot."""
    zones = seed.spec.provider.zones
    has = set(zones)
    if shoot.is_zonal and (problem := zonal_problem(zones)):
        yield problem
    pinned = shoot.spec.control_plane.zones if shoot.spec.control_plane else ()
    if absent := [zone for zone in pinned if zone not in has]:
        yield f"it does not have the control plane's zones {', '.join(absent)}"


def domain_problems(shoot: Shoot, seed: Seed, project: Document | None) -> Iterator[str]:
    """A domain below one of the seed's default domains must be the one that the shoot would get."""
    domain = shoot.spec.dns.domain if shoot.spec.dns else None
    if not domain or project is None:
        return
    owner = Project.from_document(project).metadata.name
    below = [default.domain for default in seed.spec.dns.defaults if domain.endswith(f".{default.domain}")]
    expected = [f"{shoot.metadata.name}.{owner}.{default}" for default in below]
    if below and domain not in expected:
        yield f"the domain {domain} lies below its default domain, so it must be {' or '.join(expected)}"


def _reasons(
    shoot: Shoot, seed_document: Document, project: Document | None, profile_spec: Document | None
) -> Iterator[str]:
    seed = Seed.from_document(seed_document)
    if seed.metadata.deletion_timestamp:
        yield "it is being deleted"
    if removal_owner(seed_document):
        yield "it is marked for removal"
    allowed = () if project is None else allowed_by(project)
    unchecked = unchecked_in(shoot.metadata.annotations, shoot.tolerations)
    if problem := taint_problem(effective_tolerations(shoot.tolerations, unchecked, allowed), seed.spec.taints):
        yield problem
    wanted = [restriction.name for restriction in shoot.spec.access_restrictions]
    if problem := restriction_problem(wanted, seed.spec.access_restrictions):
        yield problem
    yield from _profile_problems(profile_spec, seed)
    if shoot.spec.seed_selector is not None:
        yield from provider_type_problems(shoot.spec.seed_selector, seed)
    required = resolved_requirements(shoot.metadata.annotations).required_seeds
    if required and not any(term.meets(seed.metadata.labels) for term in required):
        yield f"its labels do not match the seedAffinity that the shoot requires ({' or '.join(map(str, required))})"
    yield from control_plane_problems(shoot, seed)
    yield from network_problems_on(shoot, seed)
    yield from domain_problems(shoot, seed, project)


def _profile_problems(profile_spec: Document | None, seed: Seed) -> Iterator[str]:
    if profile_spec is None:
        yield "the cloud profile of the shoot not found"
        return
    if profile_spec.get("seedSelector") is None:
        return
    selector = read_view(section(profile_spec, "seedSelector"), SeedSelector)
    if not _matches(selector, seed.metadata.labels):
        yield f"its labels do not match the seedSelector of the cloud profile ({selector.labels})"
    types = selector.provider_types
    if types and ANY_PROVIDER not in types and seed.spec.provider.type not in types:
        yield f"the cloud profile takes seeds of {', '.join(types)}, not of {seed.spec.provider.type}"


def network_problems_on(shoot: Shoot, seed: Seed) -> Sequence[str]:
    """Conflicts of networks. Ranges in use count once there are any: a status may name other networks first."""
    ranges = ranges_of(shoot)
    if ranges.in_use is not None and not any(ranges.in_use):
        ranges = msgspec.structs.replace(ranges, in_use=None)
    return network_problems(ranges, seed.spec.networks)


def _matches(selector: SeedSelector, labels: Mapping[str, Any]) -> bool:
    return not selector.labels.problems and selector.labels.meets(labels)
