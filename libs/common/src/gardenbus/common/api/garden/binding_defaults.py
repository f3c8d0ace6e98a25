"""Defaults of a shoot that come with its seed: domain and networks."""

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.seeds import Seed
from gardenbus.common.api.garden.shoot_networks import effective_ranges, ranges_of
from gardenbus.common.api.garden.shoots import Shoot


def with_seed_defaults(document: Document, seed: Document | Seed, project_name: str | None) -> Document | None:
    """The shoot's spec with defaults of its seed, seedName unchanged; None when there is nothing to default.

    A shoot without domain whose DNS is managed gets `<name>.<project>.<the seed's first default domain>`. Pods (of
    shoots with workers) and services that the shoot does not state come from the seed's defaults for shoots, in the
    shoot's address families. Raises InvalidResource for malformed fields. Source: Gardener's admission plugins ShootDNS
    and ShootMutator.
    """
    shoot = Shoot.from_document(document)
    seed = seed if isinstance(seed, Seed) else Seed.from_document(seed)
    filled = {
        name: {**section(document, "spec", name), **values}
        for name, values in (
            ("dns", _domain(shoot, seed, project_name)),
            ("networking", _networks(document, shoot, seed)),
        )
        if values
    }
    return {**section(document, "spec"), **filled} if filled else None


def needs_seed_defaults(shoot: Shoot, seed: Seed) -> bool:
    """False when `with_seed_defaults` surely has nothing to default; quick."""
    has_domain = shoot.spec.dns is not None and bool(shoot.spec.dns.domain)
    networking = shoot.spec.networking
    has_ranges = networking is not None and networking.pods is not None and networking.services is not None
    return bool(seed.spec.dns.defaults and not has_domain) or bool(seed.spec.networks.shoot_defaults and not has_ranges)


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
