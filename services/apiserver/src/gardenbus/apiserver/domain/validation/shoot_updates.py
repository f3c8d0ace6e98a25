"""Rules of what a Shoot keeps once it is stored. Source: Gardener's `pkg/api/core/validation/shoot.go`, its updates."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.pool_updates import check_pending_pools, check_pools
from gardenbus.apiserver.domain.validation.shoot_components import DEFAULT_PODS
from gardenbus.apiserver.domain.validation.shoot_encryption import (
    check_encryption_before_sleep,
    check_encryption_update,
)
from gardenbus.apiserver.domain.validation.shoot_workers import IN_PLACE
from gardenbus.apiserver.domain.validation.value_rules import stated_in
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings
from gardenbus.common.api.garden.expirable_versions import numbers_of
from gardenbus.common.api.garden.hibernation import is_hibernation_enabled
from gardenbus.common.api.garden.shoot_operations import FORCE_DELETION, is_force_deletion

_NODE_LOCAL_DNS = "systemComponents.nodeLocalDNS.enabled"
_WITHOUT_RESTART = (1, 34)
"""The version of Kubernetes from which node-local DNS comes and goes on running machines."""
_MANAGER = ("kubernetes", "kubeControllerManager")
_MASK = "nodeCIDRMaskSize"
_RUNS_WITH_IT = "the control plane runs with it"
_BITS_OF_IPV4 = 32
_TOLERANCE_PATH = ("controlPlane", "highAvailability", "failureTolerance")
_TOLERANCE = f"{'.'.join(_TOLERANCE_PATH)}.type"

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
    is_forced = is_force_deletion(section(metadata, "annotations"))
    was_forced = is_force_deletion(section(old or {}, "metadata", "annotations"))
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
    """Note every change of what stays, in Gardener's order (`ValidateShootSpecUpdate`)."""
    seed, before = spec.content.get("seedName") or "", old.get("seedName") or ""
    if seed != before:
        spec.add_error("seedName", f"is changed by garden.api.bind alone, and is {before or 'not set'} now")
    spec.same_as(old, "region", "make a new shoot there")
    exposure_class, before_class = spec.content.get("exposureClassName") or "", old.get("exposureClassName") or ""
    if exposure_class != before_class:
        spec.add_error(
            "exposureClassName", "is set once, when the shoot is made: what its class prescribes is merged then"
        )
    check_bindings(spec, old)
    _check_dns(spec, old, is_placed=bool(seed and before))
    manager, had = spec.nested(*_MANAGER), section(old, *_MANAGER)
    if manager.has(_MASK) and had.get(_MASK) is None:
        manager.same_as({_MASK: _default_mask(old)}, _MASK, _RUNS_WITH_IT)
    for field in (_MASK, "nodeCIDRMaskSizeIPv6"):
        manager.same_as(had, field, _RUNS_WITH_IT)
    if not _has_worker_switch(spec, old):
        if provider := spec.section("provider"):
            provider.same_as(section(old, "provider"), "type", "make a new shoot there")
            check_pools(provider, section(old, "provider"))
        _check_networking(spec, old)
        if spec.content:
            spec.same_as(old, "schedulerName", "a shoot keeps the scheduler that it was made for")
    _check_zones(spec, old)
    if seed and before:
        spec.nested(*_TOLERANCE_PATH).same_as(section(old, *_TOLERANCE_PATH), "type", _RUNS_WITH_IT)
    _check_node_local_dns(spec, old)


def _default_mask(spec: Document) -> int | None:
    """The mask of a node's pods that a shoot with workers and IPv4 has without stating one; None for others.

    Twice as many addresses as pods. Source: `calculateDefaultNodeCIDRMaskSize` in Gardener's `defaults_shoot.go`.
    """
    workers = mappings(section(spec, "provider").get("workers"))
    if not workers or section(spec, "networking").get("ipFamilies") not in (None, [], ["IPv4"]):
        return None
    own, *others = (stated_in(each, "kubernetes.kubelet.maxPods") for each in (spec, *workers))
    pods = max([own if isinstance(own, int) else DEFAULT_PODS, *(each for each in others if isinstance(each, int))])
    return _BITS_OF_IPV4 - (2 * pods - 1).bit_length() if pods > 0 else None


def check_state(manifest: FieldCursor, old: Document) -> None:
    """Note changes of a shoot's spec that its state does not bear: what is asleep, encrypted, updated."""
    spec, before = manifest.section("spec"), section(old, "spec")
    if spec.content == before:
        return
    status = section(manifest.content, "status")
    check_encryption_update(spec, before, status)
    check_encryption_before_sleep(spec, before, status)
    is_asleep = is_hibernation_enabled(dict(spec.content)) or status.get("hibernated") is True
    if stated_in(spec.content, _TOLERANCE) and not stated_in(before, _TOLERANCE) and is_asleep:
        spec.add_error(_TOLERANCE, "cannot be set while the shoot is hibernated: end its hibernation first")
    check_pending_pools(manifest, before)


def _check_node_local_dns(spec: FieldCursor, old: Document) -> None:
    """Node-local DNS stays where machines are updated in place, and would be left with the other (IPVS, or < 1.34)."""
    enabled, had = (stated_in(each, _NODE_LOCAL_DNS) is True for each in (spec.content, old))
    if enabled == had:
        return
    version = stated_in(old, "kubernetes.version")
    is_ipvs = stated_in(old, "kubernetes.kubeProxy.mode") == "IPVS"
    for pool in mappings(section(old, "provider").get("workers")):
        own = numbers_of(stated_in(pool, "kubernetes.version") or version)
        if pool.get("updateStrategy") in IN_PLACE and (is_ipvs or own < _WITHOUT_RESTART):
            problem = "cannot be changed where machines are updated in place, with IPVS or below Kubernetes 1.34"
            spec.add_error("systemComponents.nodeLocalDNS", problem)
            return


def _has_worker_switch(spec: FieldCursor, old: Document) -> bool:
    """Note all workers that are taken away, or the first that are added; true where they are."""
    has, had = (bool(stated_in(each, "provider.workers")) for each in (spec.content, old))
    if had and not has:
        spec.add_error("provider.workers", "cannot all be taken away: a shoot with workers keeps some")
    elif has and not had:
        problem = "cannot be added: a shoot without workers stays so; make a new one with workers"
        spec.add_error("provider.workers", problem)
    return has != had


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


def _check_networking(spec: FieldCursor, old: Document) -> None:
    """Note a change of the network; ranges that no seed goes with may be others until there is a seed."""
    before = section(old, "networking")
    if not before:
        return
    networking = spec.section("networking")
    if not networking:
        spec.add_error("networking", f"cannot be taken away: {_RUNS_WITH_IT}")
        return
    networking.same_as(before, "type", _RUNS_WITH_IT)
    for field in ("pods", "services") if old.get("seedName") else ():
        networking.same_as(before, field, _RUNS_WITH_IT)
    _check_families(networking, before)


def _check_dns(spec: FieldCursor, old: Document, *, is_placed: bool) -> None:
    before = section(old, "dns")
    if before and not spec.has("dns"):
        spec.add_error("dns", "cannot be taken away: names and records of the shoot are there")
        return
    spec.section("dns").same_as(before, "domain", "its API server is reached there")
    if is_placed:
        _check_primary_provider(spec.section("dns"), before)


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
