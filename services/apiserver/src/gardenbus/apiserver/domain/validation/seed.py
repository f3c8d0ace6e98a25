"""The rules of a Seed. Source: Gardener's `pkg/api/core/validation/seed.go`, for the fields that are read here."""

from collections.abc import Sequence
from functools import partial
from typing import cast

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor, unique
from gardenbus.apiserver.domain.validation.metadata import subdomain_problem
from gardenbus.apiserver.domain.validation.seed_settings import check_settings
from gardenbus.apiserver.domain.validation.shared import (
    RANGES,
    check_access_restrictions,
    check_disjoint,
    check_ip_families,
    check_ranges,
    check_resources,
    check_taints,
)
from gardenbus.apiserver.domain.validation.status import check_seed_status
from gardenbus.apiserver.domain.validation.stored_problems import check_new
from gardenbus.apiserver.domain.validation.value_rules import ValueRules, amount, check_values, one_of
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import only_text
from gardenbus.common.api.garden.shoot_operations import OPERATION, RECONCILE
from gardenbus.common.api.identity.signing_requests import RENEWALS
from gardenbus.common.api.networks import RESERVED_RANGES, is_cidr, overlap

ZONE_SELECTIONS = ("Prefer", "Enforce")
OPERATIONS = (RECONCILE, *RENEWALS, "renew-garden-access-secrets", "renew-workload-identity-tokens")
IPV4 = ["IPv4"]
_ORDER = tuple(
    f"spec.{field}"
    for field in ("provider", "networks", "backup", "taints", "volume", "settings", "ingress", "dns", "extensions")
)
"""Parts of a spec in the order in which Gardener's `ValidateSeedSpec` goes through them."""

_BALANCERS: ValueRules = {"externalTrafficPolicy": one_of("Cluster", "Local")}


def check(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of a Seed."""
    check_seed_status(manifest)
    spec, before = manifest.section("spec", required=True), section(old or {}, "spec")
    check_operation(manifest, old, OPERATIONS, awaited=RENEWALS)
    if spec:
        check_spec_update(spec, before)
    of_changes = len(manifest.errors)
    check_spec(spec, complete=True)
    if spec.content.get("resources") != before.get("resources"):
        check_resources(spec)
    if spec.content.get("networks") != before.get("networks"):
        check_disjoint(spec.section("networks"))
    check_new(spec, before, partial(check_combinations, complete=True))
    check_new(spec, before, check_reserved)
    if spec.content != before:
        check_new(spec, before, check_settings)
    manifest.errors.sort_by_field(_ORDER, since=of_changes)


def check_reserved(spec: FieldCursor) -> None:
    """Note ranges of a Seed, and defaults for its shoots, that Gardener keeps for networks between the two."""
    networks = spec.section("networks")
    for holder, fields in ((networks, RANGES), (networks.section("shootDefaults"), ("pods", "services"))):
        for field in fields:
            cidr = only_text(holder.content.get(field))
            if is_cidr(cidr) and (kept := [each for each in RESERVED_RANGES if overlap(cidr, each)]):
                holder.add_error(field, f"{cidr} overlaps with the reserved range {', '.join(kept)}")


def check_spec_update(spec: FieldCursor, before: Document) -> None:
    """Note every change of a Seed's spec, or of a template of one, that shoots on it would not bear."""
    networks, had = spec.section("networks"), section(before, "networks")
    for field in RANGES:
        networks.same_as(had, field, "the seed's network is what it is")
    if had and (networks.content.get("ipFamilies") or IPV4) != (had.get("ipFamilies") or IPV4):
        networks.add_error("ipFamilies", f"cannot be changed ({', '.join(had.get('ipFamilies') or IPV4)} stays)")
    if spec.has("ingress"):
        spec.section("ingress").same_as(section(before, "ingress"), "domain", "names of its shoots end with it")
    if backup := section(before, "backup"):
        if not spec.has("backup"):
            spec.add_error("backup", "cannot be taken away: backups of its shoots are there")
        else:
            spec.section("backup").same_as(backup, "provider", "backups of its shoots are there")
            spec.section("backup").unchanged(backup, "region", "backups of its shoots are there")
    if section(before, "dns").get("defaults") and not spec.section("dns").content.get("defaults"):
        spec.add_error("dns.defaults", "cannot all be taken away: shoots without a domain get theirs from them")


def check_operation(
    manifest: FieldCursor, old: Document | None, available: Sequence[str], *, awaited: Sequence[str]
) -> None:
    """Note an operation that there is not, and one that takes the place of another that is acted upon.

    `awaited` are those that stay until they are done. Others, as nothing acts on them, would be in the way for ever.
    """
    requested, before = (
        section(each, "metadata", "annotations").get(OPERATION) for each in (manifest.content, old or {})
    )
    if not requested or requested == before:
        return
    path = f"metadata.annotations[{OPERATION}]"
    if requested not in available:
        manifest.add_error(path, f"there is no operation {requested!s:.80}: {', '.join(available)}")
    elif before in awaited and not {requested, before} <= set(RENEWALS):
        manifest.add_error(path, f"cannot take the place of {before}: wait until it is done, or take it off first")


def check_combinations(spec: FieldCursor, *, complete: bool) -> None:
    """Note settings that do not go with the seed's zones, or cannot act, volumes without purpose, a backup of nowhere.

    Of a spec that is not `complete`, provider and zones are compared with others where they are stated.
    """
    provider = spec.section("provider")
    zones = provider.content.get("zones")
    has_zones = complete or provider.has("zones")
    count = len(set(map(str, cast("list[object]", zones)))) if isinstance(zones, list) else 0
    settings = spec.section("settings")
    if has_zones and settings.has("zoneSelection") and not count:
        settings.add_error("zoneSelection", "is for seeds with zones: state some in spec.provider.zones")
    if section(settings.content, "shootDNS").get("enabled") is False:
        settings.add_error(
            "shootDNS.enabled",
            "cannot be false: Gardener has removed it, and shoots get DNS on each seed; leave it out, and write"
            " dns: {providers: [{type: unmanaged}]} in shoots that shall have none",
        )
    balancers = settings.section("loadBalancerServices")
    check_values(balancers, _BALANCERS)
    if has_zones and balancers.content.get("zones") and count <= 1:
        balancers.add_error("zones", "is for seeds with two zones or more")
    check_values(spec.section("volume"), {"minimumSize": amount()})
    providers = spec.section("volume").entries("providers")
    for each in providers:
        for field in ("purpose", "name"):
            each.text(field, required=True)
    unique(providers, "purpose")
    backup, provider_type = spec.section("backup"), provider.content.get("type")
    if not complete and not provider_type:
        return
    if backup.has("provider") and backup.content.get("provider") != provider_type and not backup.content.get("region"):
        backup.add_error("region", "is needed where backups are at another provider")


def check_spec(spec: FieldCursor, *, complete: bool) -> None:
    """Note every problem of a Seed's spec; one that is not `complete` may leave out what is filled in later."""
    provider = spec.section("provider", required=complete)
    provider.text("type", required=complete)
    provider.text("region", required=complete)
    provider.unique_texts("zones")
    networks = spec.section("networks")
    families = check_ip_families(networks)
    check_ranges(networks, families=families)
    check_ranges(networks.section("shootDefaults"), ("pods", "services"), families=families)
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
