"""The rules of a Seed. Source: Gardener's `pkg/api/core/validation/seed.go`, for the fields that are read here."""

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.validation.field_cursor import FieldCursor, unique
from gardenbus.common.api.validation.metadata import subdomain_problem
from gardenbus.common.api.validation.shared import (
    RANGES,
    check_access_restrictions,
    check_disjoint,
    check_ip_families,
    check_ranges,
    check_resources,
    check_taints,
)
from gardenbus.common.api.validation.status import check_seed_status

ZONE_SELECTIONS = ("Prefer", "Enforce")


def check(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of a Seed."""
    check_seed_status(manifest)
    spec = manifest.section("spec", required=True)
    check_spec(spec, complete=True)
    before = section(old or {}, "spec")
    if spec.content.get("resources") != before.get("resources"):
        check_resources(spec)
    if spec.content.get("networks") != before.get("networks"):
        check_disjoint(spec.section("networks"))
    for field in RANGES if spec else ():
        spec.section("networks").same_as(section(before, "networks"), field, "the seed's network is what it is")


def check_spec(spec: FieldCursor, *, complete: bool) -> None:
    """Note every problem of a Seed's spec; one that is not `complete` may leave out what is filled in later."""
    provider = spec.section("provider", required=complete)
    provider.text("type", required=complete)
    provider.text("region", required=complete)
    provider.unique_texts("zones")
    networks = spec.section("networks")
    check_ip_families(networks)
    check_ranges(networks)
    check_ranges(networks.section("shootDefaults"), ("pods", "services"))
    settings = spec.section("settings")
    settings.section("scheduling").boolean("visible")
    settings.section("zoneSelection").choice("mode", ZONE_SELECTIONS)
    _check_dns(spec.section("dns"))
    check_taints(spec)
    check_access_restrictions(spec)
    backup = spec.section("backup")
    backup.text("provider")
    backup.text("region")


def _check_dns(dns: FieldCursor) -> None:
    domains = dns.entries("defaults")
    for domain in domains:
        domain.text("domain", required=True, rule=subdomain_problem)
    unique(domains, "domain")
    dns.section("internal").text("domain")
