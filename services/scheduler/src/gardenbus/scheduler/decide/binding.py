"""What else of a shoot is settled with its seed: its domain and the networks that it left open."""

from typing import Any

from gardenbus.common.resources.document import Document
from gardenbus.common.resources.projects import Project
from gardenbus.common.resources.seeds import Seed
from gardenbus.common.resources.shoots import Shoot
from gardenbus.scheduler.decide.request import Ranges
from gardenbus.scheduler.decide.rules.networks import effective_ranges


def spec_after_binding(
    document: Document, seed: Document | Seed, project: Document | Project | None
) -> Document | None:
    """The shoot's spec with what binding fills in, seedName left as it is; None when nothing is to be filled in.

    A shoot without domain whose DNS is managed gets `<name>.<project>.<the seed's first default domain>`. Pods (of
    shoots with workers) and services that the shoot does not state come from the seed's defaults for shoots, in the
    shoot's address families. Source: Gardener's admission plugins ShootDNS and ShootMutator.
    """
    shoot = Shoot.from_document(document)
    seed = seed if isinstance(seed, Seed) else Seed.from_document(seed)
    project = Project.from_document(project) if isinstance(project, dict) else project
    spec: Document = dict(document.get("spec") or {})
    filled = [_fill_domain(spec, shoot, seed, project), _fill_networks(spec, shoot, seed)]
    return spec if any(filled) else None


def _fill_domain(spec: Document, shoot: Shoot, seed: Seed, project: Project | None) -> bool:
    defaults = seed.spec.dns.defaults
    dns = shoot.spec.dns
    if project is None or not defaults or not shoot.has_managed_dns or (dns is not None and dns.domain):
        return False
    domain = f"{shoot.metadata.name}.{project.metadata.name}.{defaults[0].domain}"
    spec["dns"] = _section(spec, "dns") | {"domain": domain}
    return True


def _fill_networks(spec: Document, shoot: Shoot, seed: Seed) -> bool:
    networking = shoot.spec.networking
    own = (networking.pods, networking.services) if networking else (None, None)
    pods, services = effective_ranges(
        Ranges(is_workerless=shoot.is_workerless, ip_families=shoot.ip_families, pods=own[0], services=own[1]),
        seed.spec.networks.shoot_defaults,
    )
    if (pods, services) == own:
        return False
    filled = {name: cidr for name, cidr in (("pods", pods), ("services", services)) if cidr is not None}
    spec["networking"] = _section(spec, "networking") | filled
    return True


def _section(spec: Document, name: str) -> dict[str, Any]:
    return dict(spec.get(name) or {})
