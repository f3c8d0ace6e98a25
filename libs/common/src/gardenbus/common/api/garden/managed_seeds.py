"""ManagedSeeds: the template of the Seed, defaults from the Shoot, and the capacity of the gardenlet.

A ManagedSeed has the template in one of three places: in the configuration of its gardenlet, in a template (the
gardenlet is then deployed by somebody else), or in the older `seed`, which means the template.
"""

from collections.abc import Sequence
from typing import Any, cast

from gardenbus.common.api.document import SEED_LABEL_PREFIX, Document, section
from gardenbus.common.api.document_parts import mappings
from gardenbus.common.api.garden.seed_management import DEFAULT_SHOOTS

GARDENLET_API_VERSION = "gardenlet.config.gardener.cloud/v1alpha1"
GARDENLET_KIND = "GardenletConfiguration"

ROLE_LABEL = "gardener.cloud/role"
SEED_ROLE = "seed"

TEMPLATE_PATHS = {
    "gardenlet": ("gardenlet", "config", "seedConfig"),
    "seedTemplate": ("seedTemplate",),
    "seed": ("seed",),
}
"""Path of the template below `spec`, by the field that decides it; the first one stated counts."""

INGRESS_PREFIX = "ingress"
NGINX = "nginx"
_UNMANAGED = "unmanaged"


def template_path(managed_seed: Document) -> tuple[str, ...] | None:
    """Path of the seed's template below `spec`, None when the ManagedSeed has no such field."""
    spec = section(managed_seed, "spec")
    return next((path for field, path in TEMPLATE_PATHS.items() if isinstance(spec.get(field), dict)), None)


def seed_template_of(managed_seed: Document) -> Document:
    """Template of the Seed, `{"metadata", "spec"}`, as far as stated; {} without one."""
    path = template_path(managed_seed)
    template = section(managed_seed, "spec", *path) if path else {}
    return {field: section(template, field) for field in ("metadata", "spec")} if template else {}


def runs_gardenlet(managed_seed: Document) -> bool:
    """True when a gardenlet has to be deployed for the seed."""
    return template_path(managed_seed) == TEMPLATE_PATHS["gardenlet"]


def capacity_of(managed_seed: Document) -> tuple[dict[str, Any], dict[str, Any]]:
    """Capacity and reserved part of it, from the gardenlet's `resources`: quantities as written, by resource.

    Shoots default to 250. Source: Gardener's `defaults_managedseed.go`.
    """
    resources = section(managed_seed, "spec", "gardenlet", "config", "resources")
    return {"shoots": DEFAULT_SHOOTS, **section(resources, "capacity")}, dict(section(resources, "reserved"))


def seed_of(managed_seed: Document) -> Document:
    """Manifest of the Seed: named as the ManagedSeed, with the template's labels, annotations and spec."""
    template = seed_template_of(managed_seed)
    stated = section(template, "metadata")
    metadata: Document = {
        "name": section(managed_seed, "metadata").get("name"),
        "labels": {**section(stated, "labels"), ROLE_LABEL: SEED_ROLE},
    }
    if annotations := section(stated, "annotations"):
        metadata["annotations"] = dict(annotations)
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Seed",
        "metadata": metadata,
        "spec": dict(section(template, "spec")),
    }


def with_shoot_defaults(managed_seed: Document, shoot: Document, host: Document | None = None) -> Document:
    """The ManagedSeed with defaults for its seed from the shoot.

    Those are ingress, network ranges, provider, backup provider, DNS provider (of the shoot's primary provider, else of
    the default domain of `host`, the seed that the shoot is on), no vertical pod autoscaler of its own, and the labels
    of the seeds concerned. Without a template it is unchanged. Source: Gardener's plugin ManagedSeed.
    """
    path = template_path(managed_seed)
    if path is None:
        return managed_seed
    seed_spec = section(managed_seed, "spec", *path, "spec")
    filled = _with_settings(_with_provider(_with_networks(_with_ingress(seed_spec, shoot), shoot), shoot))
    filled = _with_dns_provider(filled, shoot, host)
    managed_seed = _with_seed_labels(managed_seed, shoot)
    if filled == seed_spec:
        return managed_seed
    if path[0] == "gardenlet":
        config = section(managed_seed, "spec", "gardenlet", "config")
        config = {"apiVersion": GARDENLET_API_VERSION, "kind": GARDENLET_KIND, **config}
        managed_seed = replaced(managed_seed, ("spec", "gardenlet", "config"), config)
    return replaced(managed_seed, ("spec", *path, "spec"), filled)


def ingress_domain_of(shoot: Document) -> str:
    """Ingress domain of a seed on this shoot; "" while the shoot has no domain."""
    domain = section(shoot, "spec", "dns").get("domain")
    return f"{INGRESS_PREFIX}.{domain}" if isinstance(domain, str) and domain else ""


def zones_of_workers(shoot: Document) -> Sequence[str]:
    """Zones of all workers of a shoot, sorted."""
    workers = section(shoot, "spec", "provider").get("workers")
    found: set[str] = set()
    for worker in cast("list[Any]", workers) if isinstance(workers, list) else ():
        zones = cast("Document", worker).get("zones") if isinstance(worker, dict) else None
        found |= {zone for zone in cast("list[Any]", zones or []) if isinstance(zone, str)}
    return sorted(found)


def replaced(document: Document, path: tuple[str, ...], value: Any) -> Document:
    """The document with a value at a path, copied along it."""
    field, below = path[0], path[1:]
    return {**document, field: replaced(section(document, field), below, value) if below else value}


def _filled(mapping: Document, **defaults: Any) -> Document:
    """The mapping with defaults for what is missing, null or empty; a default that is empty itself is left out."""
    empty: tuple[Any, ...] = (None, "", [], {})
    return {**mapping, **{name: value for name, value in defaults.items() if value and mapping.get(name) in empty}}


def _with_ingress(spec: Document, shoot: Document) -> Document:
    ingress = section(spec, "ingress")
    controller = _filled(section(ingress, "controller"), kind=NGINX)
    ingress = _filled({**ingress, "controller": controller}, domain=ingress_domain_of(shoot))
    spec = {**spec, "ingress": ingress}
    backup = spec.get("backup")
    if isinstance(backup, dict):
        provider = section(shoot, "spec", "provider").get("type")
        return {**spec, "backup": _filled(cast("Document", backup), provider=provider)}
    return spec


def _with_networks(spec: Document, shoot: Document) -> Document:
    ranges = section(shoot, "spec", "networking")
    own = {name: ranges.get(name) for name in ("nodes", "pods", "services")}
    networks = _filled(section(spec, "networks"), **own)
    return {**spec, "networks": networks} if networks else spec


def _with_provider(spec: Document, shoot: Document) -> Document:
    provider = _filled(
        section(spec, "provider"),
        type=section(shoot, "spec", "provider").get("type"),
        region=section(shoot, "spec").get("region"),
        zones=zones_of_workers(shoot),
    )
    return {**spec, "provider": provider} if provider else spec


def _with_settings(spec: Document) -> Document:
    settings = section(spec, "settings")
    if settings.get("verticalPodAutoscaler") is not None:
        return spec
    return {**spec, "settings": {**settings, "verticalPodAutoscaler": {"enabled": False}}}


def _with_dns_provider(spec: Document, shoot: Document, host: Document | None) -> Document:
    dns = section(spec, "dns")
    if dns.get("provider") is not None:
        return spec
    provider = _primary_provider(shoot) or _default_domain_provider(shoot, host)
    return {**spec, "dns": {**dns, "provider": provider}} if provider else spec


def _primary_provider(shoot: Document) -> Document:
    for provider in mappings(section(shoot, "spec", "dns").get("providers")):
        if provider.get("primary") is not True or provider.get("type") in (None, "", _UNMANAGED):
            continue
        found: Document = {"type": provider["type"]}
        namespace = section(shoot, "metadata").get("namespace")
        if name := provider.get("secretName"):
            found["secretRef"] = {"name": name, "namespace": namespace}
        if credentials := section(provider, "credentialsRef"):
            found["credentialsRef"] = {**credentials, "namespace": namespace}
        return found
    return {}


def _default_domain_provider(shoot: Document, host: Document | None) -> Document:
    domain = section(shoot, "spec", "dns").get("domain")
    if not isinstance(domain, str):
        return {}
    for default in mappings(section(host or {}, "spec", "dns").get("defaults")):
        if default.get("type") and domain.endswith(f".{default.get('domain')}"):
            return {name: value for name, value in default.items() if name in ("type", "credentialsRef", "zone")}
    return {}


def _with_seed_labels(managed_seed: Document, shoot: Document) -> Document:
    metadata = section(managed_seed, "metadata")
    labels = section(metadata, "labels")
    seeds = {section(shoot, part).get("seedName") for part in ("spec", "status")}
    others = {name: value for name, value in labels.items() if not str(name).startswith(SEED_LABEL_PREFIX)}
    named = {f"{SEED_LABEL_PREFIX}{seed}": "true" for seed in sorted(seed for seed in seeds if seed)}
    wanted = {**others, **named}
    return managed_seed if wanted == labels else {**managed_seed, "metadata": {**metadata, "labels": wanted}}
