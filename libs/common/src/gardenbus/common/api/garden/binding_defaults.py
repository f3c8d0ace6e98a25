"""Defaults of a shoot that come with its seed: domain and networks."""

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings
from gardenbus.common.api.garden.seeds import Seed
from gardenbus.common.api.garden.shoot_networks import effective_ranges, ranges_of
from gardenbus.common.api.garden.shoots import UNMANAGED_DNS, Shoot


def with_seed_defaults(document: Document, seed: Document | Seed, project_name: str | None) -> Document | None:
    """The shoot's spec with defaults of its seed, seedName unchanged; None when there is nothing to default.

    Both of what follows. Raises InvalidResource for malformed fields.
    """
    shoot = Shoot.from_document(document)
    seed = seed if isinstance(seed, Seed) else Seed.from_document(seed)
    spec = section(document, "spec")
    filled = _with_parts(spec, dns=_dns(spec, shoot, seed, project_name), networking=_networks(document, shoot, seed))
    return None if filled is spec else filled


def with_seed_dns(document: Document, seed: Document, project_name: str | None) -> Document:
    """The shoot's spec with DNS as its seed has it. Raises InvalidResource for malformed fields.

    A shoot without domain whose DNS is managed gets `<name>.<project>.<the seed's first default domain>`. Its first
    provider is primary where none is, unless its domain is below a default domain. Source: Gardener's admission plugin
    ShootDNS.
    """
    spec = section(document, "spec")
    return _with_parts(spec, dns=_dns(spec, Shoot.from_document(document), Seed.from_document(seed), project_name))


def with_seed_networks(document: Document, seed: Document) -> Document:
    """The shoot's spec with networks of its seed. Raises InvalidResource for malformed fields.

    Pods (of shoots with workers) and services that the shoot does not state come from the seed's defaults for shoots,
    in the shoot's address families. Source: Gardener's admission plugin ShootMutator.
    """
    networks = _networks(document, Shoot.from_document(document), Seed.from_document(seed))
    return _with_parts(section(document, "spec"), networking=networks)


def is_below(domain: object, seed: Seed) -> bool:
    """True when a domain is below a default domain of a seed."""
    return any(isinstance(domain, str) and domain.endswith(f".{one.domain}") for one in seed.spec.dns.defaults)


def _with_parts(spec: Document, **parts: Document) -> Document:
    filled = {name: {**section(spec, name), **values} for name, values in parts.items() if values}
    return {**spec, **filled} if filled else spec


def needs_seed_defaults(shoot: Shoot, seed: Seed) -> bool:
    """False when `with_seed_defaults` surely has nothing to default; quick."""
    has_domain = shoot.spec.dns is not None and bool(shoot.spec.dns.domain)
    if shoot.spec.dns is not None and shoot.spec.dns.providers:
        return True
    networking = shoot.spec.networking
    has_ranges = networking is not None and networking.pods is not None and networking.services is not None
    return bool(seed.spec.dns.defaults and not has_domain) or bool(seed.spec.networks.shoot_defaults and not has_ranges)


def _dns(spec: Document, shoot: Shoot, seed: Seed, project_name: str | None) -> Document:
    values = _domain(shoot, seed, project_name)
    providers = mappings(section(spec, "dns").get("providers"))
    domain = values.get("domain") or section(spec, "dns").get("domain")
    if not providers or is_below(domain, seed) or any(one.get("primary") is True for one in providers):
        return values
    if domain or providers[0].get("type") == UNMANAGED_DNS:
        values = {**values, "providers": [{**providers[0], "primary": True}, *providers[1:]]}
    return values


def _domain(shoot: Shoot, seed: Seed, project_name: str | None) -> Document:
    defaults = seed.spec.dns.defaults
    has_own = shoot.spec.dns is not None and bool(shoot.spec.dns.domain)
    if project_name is None or not defaults or has_own or not shoot.has_managed_dns:
        return {}
    return {"domain": f"{shoot.metadata.name}.{project_name}.{defaults[0].domain}"}


def _networks(shoot_document: Document, shoot: Shoot, seed: Seed) -> Document:
    ranges = ranges_of(shoot)
    pods, services = effective_ranges(ranges, seed.spec.networks.shoot_defaults)
    filled = (("pods", pods, ranges.pods), ("services", services, ranges.services))
    values: Document = {name: cidr for name, cidr, own in filled if own is None and cidr is not None}
    if not values or section(shoot_document, "spec", "networking"):
        return values
    # spec.networking is created here: with the defaults of admission, or the next apply would find a difference.
    return {"ipFamilies": ["IPv4"], **values}
