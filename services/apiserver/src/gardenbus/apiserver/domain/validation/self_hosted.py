"""Rules of shoots that host themselves: one of their worker pools carries the control plane.

Source: `ValidateWorkerControlPlane`, `validateSelfHostedShootControlPlane` and `ValidateSystemComponentWorkers` in
Gardener's `pkg/api/core/validation/shoot.go`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gardenbus.apiserver.domain.validation.credentials import check_credentials
from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.metadata import label_problem
from gardenbus.apiserver.domain.validation.value_rules import stated_in
from gardenbus.common.api.document import Document
from gardenbus.common.api.document_parts import mappings
from gardenbus.common.api.keys import GARDEN_NAMESPACE

_OF_HIGH_AVAILABILITY = 3
"""Machines, and zones, of a control plane that bears a failure."""


def is_self_hosted(spec: Mapping[str, Any]) -> bool:
    """True for the spec of a shoot one of whose pools carries its control plane."""
    return _hosting_pool(spec) is not None


def check_self_hosted(manifest: FieldCursor, spec: FieldCursor, old: Document) -> None:
    """Note every problem of a shoot that hosts itself, and of one that was to do so, or no more."""
    if not is_self_hosted(spec.content):
        if is_self_hosted(old):
            spec.add_error("provider.workers", "one pool must carry the control plane still: a shoot keeps its host")
        return
    namespace = manifest.section("metadata").content.get("namespace")
    pools = [pool for pool in spec.section("provider").entries("workers") if pool.section("controlPlane")]
    for pool in pools[1:]:
        pool.add_error("controlPlane", "is for one pool alone: another carries the control plane already")
    for pool in pools:
        _check_backup(pool, spec, namespace)
        _check_exposure(pool.nested("controlPlane", "exposure"))
    _check_pool(spec, pools[0])
    _check_other_pools(spec, pools)
    _check_placement(spec, namespace)
    if not old.get("provider"):
        return
    before = _hosting_pool(old)
    if before is None:
        spec.add_error("provider.workers", "none can carry the control plane, which is on a seed: make a new shoot")
    elif before.get("name") != pools[0].content.get("name"):
        spec.add_error("provider.workers", f"{before.get('name')} carries the control plane, and that stays")


def _hosting_pool(spec: Mapping[str, Any]) -> Document | None:
    pools = mappings(stated_in(spec, "provider.workers"))
    return next((pool for pool in pools if isinstance(pool.get("controlPlane"), dict)), None)


def _check_placement(spec: FieldCursor, namespace: object) -> None:
    if namespace != GARDEN_NAMESPACE:
        spec.errors.add_error("metadata.namespace", f"must be {GARDEN_NAMESPACE} for a shoot that hosts itself")
    if spec.has("seedName"):
        spec.add_error("seedName", "must be left out: the shoot hosts itself")
    if spec.has("hibernation"):
        spec.add_error("hibernation", "must be left out: a shoot that hosts itself cannot sleep")


def _check_backup(pool: FieldCursor, spec: FieldCursor, namespace: object) -> None:
    backup = pool.nested("controlPlane", "backup")
    if not backup:
        return
    provider = backup.text("provider", required=True)
    if provider != spec.section("provider").content.get("type") and not backup.content.get("region"):
        backup.add_error("region", "is needed where backups are at another provider")
    reference = backup.section("credentialsRef", required=True)
    check_credentials(reference)
    if reference.content.get("kind") == "WorkloadIdentity":
        reference.add_error("kind", "must be Secret or InternalSecret: a WorkloadIdentity cannot be used for backups")
    if reference and reference.content.get("namespace") != namespace:
        reference.add_error("namespace", "must be the namespace of the Shoot")


def _check_exposure(exposure: FieldCursor) -> None:
    extension = exposure.section("extension")
    if extension and exposure.section("dns"):
        exposure.add_error("", "is by dns or by an extension: leave one of them out")
    extension.text("type", filled=True, rule=label_problem)


def _check_pool(spec: FieldCursor, pool: FieldCursor) -> None:
    """Check the size of the pool that carries the control plane; Gardener takes one machine, also where 3 are due."""
    least, most = (pool.content.get(field) or 0 for field in ("minimum", "maximum"))
    if least != 1 or most != 1:
        pool.add_error("minimum", "must be 1, as maximum: one machine carries the control plane")
    availability = spec.nested("controlPlane", "highAvailability")
    if not availability:
        return
    if most != _OF_HIGH_AVAILABILITY:
        pool.add_error("maximum", "must be 3 where the control plane is highly available")
    for field in ("maxSurge", "maxUnavailable"):
        if pool.content.get(field) != 1:
            pool.add_error(field, "must be 1 where the control plane is highly available")
    zones = pool.texts("zones")
    if availability.section("failureTolerance").content.get("type") == "zone" and len(zones) != _OF_HIGH_AVAILABILITY:
        pool.add_error("zones", "must be three where the failure tolerance is zone")


def _check_other_pools(spec: FieldCursor, hosting: Sequence[FieldCursor]) -> None:
    own = {zone for pool in hosting for _, zone in pool.texts("zones")}
    for pool in spec.section("provider").entries("workers"):
        takes = pool.section("systemComponents").content.get("allow") is not False
        if not pool.section("controlPlane") and takes and not own.issuperset(zone for _, zone in pool.texts("zones")):
            pool.add_error("systemComponents", "are for pools in zones of the pool that carries the control plane")
