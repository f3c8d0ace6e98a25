"""Binding by name: whether a seed may take a shoot, and what else of the shoot is settled with its seed.

Where the scheduler chooses, these hold by its choice; here somebody else chose. Whether a seed is visible or ready, and
its region, are that somebody's business. Source: Gardener's admission plugins ShootValidator, ShootMutator, ShootDNS.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gardenbus.common.errors import Forbidden, InvalidResource
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.networks import RESERVED_RANGES, family_of, overlap
from gardenbus.common.resources.projects import Project
from gardenbus.common.resources.seeds import Seed, shoot_capacity
from gardenbus.common.resources.shoots import SeedSelector, Shoot
from gardenbus.common.resources.views import read_view

ANY_PROVIDER = "*"
ZONES_FOR_HIGH_AVAILABILITY = 3


def admit_binding(
    shoot: Document,
    seed: Document | None,
    *,
    project: Document | None,
    profile_spec: Document | None,
    usage: int | None = None,
) -> None:
    """Check that a seed may take a shoot that has none yet.

    Raises Forbidden with every reason. The store checks capacity again when it binds; `usage` is for those who know it.
    """
    name = str(section(shoot, "spec").get("seedName") or "") if seed is None else str(seed["metadata"]["name"])
    if seed is None:
        raise Forbidden(f"spec.seedName: there is no seed {name}")
    reasons = list(_reasons(Shoot.from_document(shoot), seed, project, profile_spec))
    if usage is not None and (capacity := shoot_capacity(seed)) is not None and usage >= capacity:
        reasons.append(f"it already has the maximum number of shoots scheduled on it ({capacity})")
    if reasons:
        raise Forbidden(f"seed {name} cannot take the shoot: {'; '.join(reasons)}")


def settled_with_seed(shoot: Document, seed: Document, project: Document | None) -> Document:
    """The shoot with its domain and the ranges that it left open filled in, as its seed's defaults say.

    A shoot that cannot be read stays as it is: its validation says why.
    """
    try:
        view, on = Shoot.from_document(shoot), Seed.from_document(seed)
    except InvalidResource:
        return shoot
    spec: Document = {**shoot["spec"]}
    ranges = {field: cidr for field, cidr in _ranges(view, on).items() if field != "nodes" and cidr}
    if any(section(spec, "networking").get(field) != cidr for field, cidr in ranges.items()):
        spec["networking"] = {**section(spec, "networking"), **ranges}
    defaults = on.spec.dns.defaults
    if defaults and project is not None and view.has_managed_dns and not (view.spec.dns and view.spec.dns.domain):
        owner = section(project, "metadata").get("name")
        spec["dns"] = {**section(spec, "dns"), "domain": f"{view.metadata.name}.{owner}.{defaults[0].domain}"}
    return {**shoot, "spec": spec}


def selector_problems(shoot: Shoot, seed: Seed) -> Iterator[str]:
    """Why the shoot's own selector does not take the seed; here `*` is no wildcard."""
    selector = shoot.spec.seed_selector
    if selector is None:
        return
    if not _matches(selector, seed.metadata.labels):
        yield f"its labels do not match the seedSelector of the shoot ({selector.labels})"
    yield from provider_type_problems(selector, seed)


def provider_type_problems(selector: SeedSelector, seed: Seed) -> Iterator[str]:
    """Why the shoot's provider types do not take the seed."""
    if selector.provider_types and seed.spec.provider.type not in selector.provider_types:
        allowed = ", ".join(selector.provider_types)
        yield f"its provider type {seed.spec.provider.type} is none of those that the shoot selects ({allowed})"


def _reasons(
    shoot: Shoot, seed_document: Document, project: Document | None, profile_spec: Document | None
) -> Iterator[str]:
    seed = Seed.from_document(seed_document)
    if seed.metadata.deletion_timestamp:
        yield "it is being deleted"
    yield from _taint_problems(shoot, seed)
    offered = {restriction.name for restriction in seed.spec.access_restrictions}
    if missing := [one.name for one in shoot.spec.access_restrictions if one.name not in offered]:
        yield f"it does not support the access restrictions {', '.join(missing)}"
    yield from _profile_problems(profile_spec, seed)
    if shoot.spec.seed_selector is not None:
        yield from provider_type_problems(shoot.spec.seed_selector, seed)
    zones = seed.spec.provider.zones
    if shoot.is_zonal and len(zones) < ZONES_FOR_HIGH_AVAILABILITY:
        yield f"it has {len(zones)} zones, and failure tolerance of type zone needs {ZONES_FOR_HIGH_AVAILABILITY}"
    pinned = shoot.spec.control_plane.zones if shoot.spec.control_plane else ()
    if absent := [zone for zone in pinned if zone not in zones]:
        yield f"it does not have the control plane's zones {', '.join(absent)}"
    yield from _network_problems(shoot, seed)
    yield from _domain_problems(shoot, seed, project)


def _taint_problems(shoot: Shoot, seed: Seed) -> Iterator[str]:
    """More taints than tolerations are never tolerated, whatever they are (Gardener's `v1beta1/helper/seed.go`)."""
    tolerated = {toleration.key: toleration.value or "" for toleration in shoot.spec.tolerations}
    refused = [
        taint
        for taint in seed.spec.taints
        if taint.key not in tolerated or (taint.value is not None and tolerated[taint.key] != taint.value)
    ]
    if refused or len(seed.spec.taints) > len(shoot.spec.tolerations):
        named = ", ".join(f"{taint.key}={taint.value}" if taint.value else taint.key for taint in refused)
        yield f"the shoot does not tolerate its taints{f' ({named})' if named else ''}"


def _profile_problems(profile_spec: Document | None, seed: Seed) -> Iterator[str]:
    if profile_spec is None:
        yield "the cloud profile of the shoot is not there"
        return
    if profile_spec.get("seedSelector") is None:
        return
    selector = read_view(section(profile_spec, "seedSelector"), SeedSelector)
    if not _matches(selector, seed.metadata.labels):
        yield f"its labels do not match the seedSelector of the cloud profile ({selector.labels})"
    types = selector.provider_types
    if types and ANY_PROVIDER not in types and seed.spec.provider.type not in types:
        yield f"the cloud profile takes seeds of {', '.join(types)}, not of {seed.spec.provider.type}"


def _network_problems(shoot: Shoot, seed: Seed) -> Iterator[str]:
    own = seed.spec.networks
    taken = [("nodes", own.nodes), ("pods", own.pods), ("services", own.services)]
    for field, cidr in _ranges(shoot, seed).items():
        if cidr is None:
            continue
        for other_field, other in taken:
            if other is not None and overlap(cidr, other):
                yield f"the shoot's {field} {cidr} overlap with its {other_field} {other}"
        for reserved in RESERVED_RANGES:
            if overlap(cidr, reserved):
                yield f"the shoot's {field} {cidr} overlap with the reserved range {reserved}"


def _ranges(shoot: Shoot, seed: Seed) -> Mapping[str, str | None]:
    """The shoot's ranges on this seed: its own, else the seed's defaults in the shoot's families."""
    networking, defaults = shoot.spec.networking, seed.spec.networks.shoot_defaults
    pods, services = (networking.pods, networking.services) if networking else (None, None)
    if defaults is not None:
        if pods is None and not shoot.is_workerless:
            pods = _in_families(defaults.pods, shoot.ip_families)
        if services is None:
            services = _in_families(defaults.services, shoot.ip_families)
    return {"nodes": networking.nodes if networking else None, "pods": pods, "services": services}


def _in_families(cidr: str | None, families: tuple[str, ...]) -> str | None:
    return cidr if cidr is not None and family_of(cidr) in families else None


def _domain_problems(shoot: Shoot, seed: Seed, project: Document | None) -> Iterator[str]:
    """A domain below one of the seed's default domains must be the one that the shoot would get."""
    domain = shoot.spec.dns.domain if shoot.spec.dns else None
    if not domain or project is None:
        return
    owner = Project.from_document(project).metadata.name
    below = [default.domain for default in seed.spec.dns.defaults if domain.endswith(f".{default.domain}")]
    expected = [f"{shoot.metadata.name}.{owner}.{default}" for default in below]
    if below and domain not in expected:
        yield f"the domain {domain} lies below its default domain, so it must be {' or '.join(expected)}"


def _matches(selector: SeedSelector, labels: Mapping[str, Any]) -> bool:
    return not selector.labels.problems and selector.labels.meets(labels)
