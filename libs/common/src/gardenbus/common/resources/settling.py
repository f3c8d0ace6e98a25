"""What of a shoot is settled with its seed: its domain and the networks that it left open."""

from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.seeds import Seed
from gardenbus.common.resources.shoot_networks import effective_ranges, ranges_of
from gardenbus.common.resources.shoots import Shoot


def spec_on_seed(document: Document, seed: Document | Seed, project_name: str | None) -> Document | None:
    """The shoot's spec with what its seed fills in, seedName left as it is; None when nothing is to be filled in.

    A shoot without domain whose DNS is managed gets `<name>.<project>.<the seed's first default domain>`. Pods (of
    shoots with workers) and services that the shoot does not state come from the seed's defaults for shoots, in the
    shoot's address families. Raises InvalidResource for what cannot be read. Source: Gardener's admission plugins
    ShootDNS and ShootMutator.
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


def may_fill_in(shoot: Shoot, seed: Seed) -> bool:
    """Whether `spec_on_seed` may have something to fill in; quick, and right when it says no."""
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
    # Networking comes about here: with what admission adds to it, or the next apply would find a difference.
    return {"ipFamilies": ["IPv4"], **values}
