"""Rules of what a Shoot keeps once it is stored. Source: Gardener's `pkg/api/core/validation/shoot.go`, its updates."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.pool_updates import check_pools
from gardenbus.apiserver.domain.validation.value_rules import stated_in
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings
from gardenbus.common.api.garden.shoot_operations import FORCE_DELETION

_TOLERANCE = "controlPlane.highAvailability.failureTolerance.type"

FORCEABLE_ERRORS: Sequence[str] = (
    "ERR_CLEANUP_CLUSTER_RESOURCES",
    "ERR_CONFIGURATION_PROBLEM",
    "ERR_INFRA_DEPENDENCIES",
    "ERR_INFRA_UNAUTHENTICATED",
    "ERR_INFRA_UNAUTHORIZED",
)
"""Codes of errors in a Shoot's status with which its deletion may be forced."""


def check_force_deletion(manifest: FieldCursor, old: Document | None) -> None:
    """Note a deletion that is forced though it need not be, or not any more. Source: the plugin ShootForceDeletion."""
    metadata = section(manifest.content, "metadata")
    is_forced, was_forced = _is_forced(metadata), _is_forced(section(old or {}, "metadata"))
    if is_forced == was_forced:
        return
    problem = ""
    if was_forced:
        problem = "stays once it is set"
    elif not metadata.get("deletionTimestamp"):
        problem = "is for a shoot that is being deleted: delete it first"
    elif not set(_error_codes(section(manifest.content, "status"))) & set(FORCEABLE_ERRORS):
        problem = f"is for a deletion that failed with one of {', '.join(FORCEABLE_ERRORS)} (status.lastErrors)"
    if problem:
        manifest.errors.add_error(f"metadata.annotations[{FORCE_DELETION}]", problem)


def _is_forced(metadata: Document) -> bool:
    return str(section(metadata, "annotations").get(FORCE_DELETION)).lower() in ("true", "1", "t")


def _error_codes(status: Document) -> Iterator[str]:
    for error in mappings(status.get("lastErrors")):
        codes: Any = error.get("codes")
        yield from (str(code) for code in codes or () if isinstance(codes, list))


def check_bindings(spec: FieldCursor, old: Document) -> None:
    """Note two bindings at once, and those that are taken away or exchanged. A secret's may give way to another."""
    secret, credentials = (spec.content.get(field) or "" for field in ("secretBindingName", "credentialsBindingName"))
    had_secret, had_credentials = (old.get(field) or "" for field in ("secretBindingName", "credentialsBindingName"))
    if (secret, credentials) == (had_secret, had_credentials):
        return
    if secret and credentials:
        spec.add_error("secretBindingName", "must not be set beside credentialsBindingName: leave it out")
    if had_secret and secret != had_secret and (secret or not credentials):
        spec.add_error("secretBindingName", f"stays {had_secret}, unless credentialsBindingName replaces it")
    if had_credentials and not credentials:
        spec.add_error("credentialsBindingName", "cannot be taken away: name another one")


def check_immutable(spec: FieldCursor, old: Document) -> None:
    """Note every change of what stays."""
    seed, before = spec.content.get("seedName") or "", old.get("seedName") or ""
    if seed != before:
        spec.add_error("seedName", f"is changed by garden.api.bind alone, and is {before or 'not set'} now")
    scheduler = "a shoot keeps the scheduler that it was made for"
    spec.same_as(old, "schedulerName", scheduler)
    spec.same_as(old, "region", "make a new shoot there")
    exposure_class, before_class = spec.content.get("exposureClassName") or "", old.get("exposureClassName") or ""
    if exposure_class != before_class:
        spec.add_error(
            "exposureClassName", "is set once, when the shoot is made: what its class prescribes is merged then"
        )
    if provider := spec.section("provider"):
        provider.same_as(section(old, "provider"), "type", "make a new shoot there")
        check_pools(provider, section(old, "provider"))
        _check_worker_switch(provider, section(old, "provider"))
    _check_zones(spec, old)
    if before:
        _check_immutable_once_placed(spec, old)


def _check_worker_switch(provider: FieldCursor, old: Document) -> None:
    has, had = bool(provider.content.get("workers")), bool(old.get("workers"))
    if had and not has:
        provider.add_error("workers", "cannot all be taken away: a shoot with workers keeps some")
    elif has and not had:
        provider.add_error("workers", "cannot be added: a shoot without workers stays so; make a new one with workers")


def _check_zones(spec: FieldCursor, old: Document) -> None:
    """A control plane keeps its zones, unless all are left out, or it becomes zonal and gets more."""
    zones, had = (_zones_of(each) for each in (spec.content, old))
    is_zonal, was_zonal = (stated_in(each, _TOLERANCE) == "zone" for each in (spec.content, old))
    if not zones or zones == had or (is_zonal and not was_zonal and had and set(had) <= set(zones)):
        return
    spec.add_error("controlPlane.zones", f"cannot be changed ({', '.join(had) or 'none'} stays), only left out")


def _zones_of(spec: Mapping[str, Any]) -> Sequence[str]:
    zones = stated_in(spec, "controlPlane.zones")
    return [str(zone) for zone in cast("list[object]", zones)] if isinstance(zones, list) else []


def _check_immutable_once_placed(spec: FieldCursor, old: Document) -> None:
    placed = "the control plane runs with it"
    manager = ("kubernetes", "kubeControllerManager")
    for field in ("nodeCIDRMaskSize", "nodeCIDRMaskSizeIPv6"):
        spec.nested(*manager).same_as(section(old, *manager), field, placed)
    _check_families(spec.section("networking"), section(old, "networking"))
    _check_primary_provider(spec.section("dns"), section(old, "dns"))
    for field in ("type", "pods", "services"):
        spec.section("networking").same_as(section(old, "networking"), field, placed)
    spec.section("dns").same_as(section(old, "dns"), "domain", "its API server is reached there")
    tolerance = ("controlPlane", "highAvailability", "failureTolerance")
    spec.nested(*tolerance).same_as(section(old, *tolerance), "type", placed)


def _check_families(networking: FieldCursor, old: Document) -> None:
    """IPv4 and both families may become each other; nothing else changes."""
    families, had = (each.get("ipFamilies") or ["IPv4"] for each in (networking.content, old))
    one_or_both = (["IPv4"], ["IPv4", "IPv6"])
    if families != had and not (families in one_or_both and had in one_or_both):
        networking.add_error(
            "ipFamilies",
            f"cannot be changed ({', '.join(had)} stays): IPv4 alone may become IPv4, IPv6, and the reverse",
        )


def _check_primary_provider(dns: FieldCursor, old: Document) -> None:
    before = _primary_of(old)
    if before is None:
        return
    after = _primary_of(dns.content)
    if after is None:
        dns.add_error("providers", "the primary provider cannot be taken away: the shoot's records are there")
    elif before.get("type") and after.get("type") != before.get("type"):
        dns.add_error("providers", f"the primary provider's type stays {before['type']}: the shoot's records are there")


def _primary_of(dns: Mapping[str, Any]) -> Document | None:
    return next((each for each in mappings(dns.get("providers")) if each.get("primary") is True), None)
