"""The rules of a Seed. Source: Gardener's `pkg/api/core/validation/seed.go`, for the fields that are read here."""

from gardenbus.apiserver.decide.fields import Place, unique
from gardenbus.apiserver.decide.metadata import subdomain_problem
from gardenbus.apiserver.decide.validators.scheduling import (
    check_access_restrictions,
    check_ip_families,
    check_range,
    check_taints,
)
from gardenbus.apiserver.decide.validators.status import check_seed_status
from gardenbus.common.resources.document import Document, section

ZONE_SELECTIONS = ("Prefer", "Enforce")


def check(manifest: Place, old: Document | None) -> None:
    """Note every problem of a Seed."""
    check_seed_status(manifest)
    spec = manifest.section("spec", required=True)
    if spec is None:
        return
    check_spec(spec, complete=True)
    if old is not None:
        networks = spec.section("networks") or Place({}, spec.at("networks"), spec.notebook)
        for field in ("nodes", "pods", "services"):
            networks.same_as(section(old, "spec", "networks"), field, "the seed's network is what it is")


def check_spec(spec: Place, *, complete: bool) -> None:
    """Note every problem of a Seed's spec; one that is not `complete` may leave out what is filled in later."""
    provider = spec.section("provider", required=complete)
    if provider is not None:
        provider.text("type", required=complete)
        provider.text("region", required=complete)
        provider.unique_texts("zones")
    _check_networks(spec)
    _check_settings(spec)
    _check_dns(spec)
    check_taints(spec)
    check_access_restrictions(spec)
    if backup := spec.section("backup"):
        backup.text("provider")
        backup.text("region")


def _check_networks(spec: Place) -> None:
    networks = spec.section("networks")
    if networks is None:
        return
    check_ip_families(networks)
    for field in ("nodes", "pods", "services"):
        check_range(networks, field)
    if defaults := networks.section("shootDefaults"):
        for field in ("pods", "services"):
            check_range(defaults, field)


def _check_settings(spec: Place) -> None:
    settings = spec.section("settings")
    if settings is None:
        return
    if scheduling := settings.section("scheduling"):
        scheduling.boolean("visible")
    if selection := settings.section("zoneSelection"):
        selection.choice("mode", ZONE_SELECTIONS)


def _check_dns(spec: Place) -> None:
    dns = spec.section("dns")
    if dns is None:
        return
    domains = dns.entries("defaults")
    for domain in domains:
        if (name := domain.text("domain", required=True)) and (problem := subdomain_problem(name)):
            domain.note("domain", problem)
    unique(domains, "domain")
    if internal := dns.section("internal"):
        internal.text("domain")
