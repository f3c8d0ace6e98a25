"""Rules of what a worker pool keeps: its machines are replaced, or updated in place, and cannot change all of it then.

Source: Gardener's `ValidateProviderUpdate` in `pkg/api/core/validation/shoot.go`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.shoot_workers import IN_PLACE
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings
from gardenbus.common.api.garden.expirable_versions import numbers_of
from gardenbus.common.api.garden.shoot_operations import OPERATION, requested_operations

_FORCED = "force-in-place-update"
_SAME_MACHINES = "machines are updated in place"


def check_pools(provider: FieldCursor, old: Document) -> None:
    """Note each change of a pool of the same name that its machines would not bear."""
    pools = {str(pool.get("name")): pool for pool in mappings(old.get("workers"))}
    for worker in provider.entries("workers"):
        before = pools.get(str(worker.content.get("name")))
        if before is not None and before != worker.content:
            _check_pool(worker, before)


def check_pending_pools(manifest: FieldCursor, old: Document) -> None:
    """Note changes of pools whose machines are updated in place right now, unless they are forced.

    A pool changes as well with the version and the kubelet of the shoot, where it has none of its own.
    """
    pending = section(manifest.content, "status", "inPlaceUpdates", "pendingWorkerUpdates")
    if not pending or _FORCED in requested_operations(dict(manifest.content)):
        return
    names = {str(name) for field in ("autoInPlaceUpdate", "manualInPlaceUpdate") for name in pending.get(field) or ()}
    spec = manifest.section("spec")
    pools = {str(pool.get("name")): pool for pool in mappings(section(old, "provider").get("workers"))}
    for worker in spec.section("provider").entries("workers"):
        before = pools.get(name := str(worker.content.get("name")))
        if name not in names or before is None or worker.content.get("updateStrategy") not in IN_PLACE:
            continue
        if before != worker.content or _inherited(spec.content, worker.content) != _inherited(old, before):
            worker.add_error("", f"cannot be changed while it is updated in place, unless {OPERATION} is {_FORCED}")


def _inherited(spec: Mapping[str, Any], pool: Mapping[str, Any]) -> Sequence[object]:
    """Version and kubelet that a pool has, its own or those of the shoot."""
    own, common = (section(dict(each), "kubernetes") for each in (pool, spec))
    return [own.get(field) or common.get(field) for field in ("version", "kubelet")]


def _check_pool(worker: FieldCursor, before: Document) -> None:
    strategy, had = (each.get("updateStrategy") for each in (worker.content, before))
    is_in_place, was_in_place = strategy in IN_PLACE, had in IN_PLACE
    if is_in_place != was_in_place:
        rolling = "rolling updates and updates in place do not become each other: make another pool"
        worker.add_error("updateStrategy", f"stays {had or 'AutoRollingUpdate'}: {rolling}")
    if is_in_place and strategy == had:
        _check_machines(worker, before)
    if is_in_place:
        _check_image_version(worker.nested("machine", "image"), section(before, "machine", "image"))
    if backup := section(before, "controlPlane", "backup"):
        for field in ("provider", "region"):
            worker.nested("controlPlane", "backup").unchanged(backup, field, "backups are there")


def _check_machines(worker: FieldCursor, before: Document) -> None:
    worker.section("machine").same_as(section(before, "machine"), "type", _SAME_MACHINES)
    for path in (("machine", "image"), ("cri",)):
        if worker.nested(*path).content:
            worker.nested(*path).same_as(section(before, *path), "name", _SAME_MACHINES)
    if (worker.content.get("volume") or None) != (before.get("volume") or None):
        worker.add_error("volume", f"cannot be changed: {_SAME_MACHINES}")


def _check_image_version(image: FieldCursor, before: Document) -> None:
    version, had = image.content.get("version"), before.get("version")
    if numbers_of(version) < numbers_of(had) and image.content.get("name") == before.get("name"):
        image.add_error("version", f"must not be below {had}: {_SAME_MACHINES}")
