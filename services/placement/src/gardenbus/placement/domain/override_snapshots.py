"""Plan of the snapshots of an override.

The next one is made before the last one is retired, so that an override is never without: of several that are
labelled as the latest, the one with the highest index counts.
Source: KubeFleet's `pkg/controllers/overrider`.
"""

import base64
import hashlib
from collections.abc import Sequence

import msgspec

from gardenbus.common.api.document import Document, StoredObject, canonical, section
from gardenbus.common.api.fleet.overrides import OVERRIDE_INDEX_LABEL, OVERRIDE_LABEL, snapshot_kind
from gardenbus.common.api.fleet.placement_parts import IS_LATEST_LABEL
from gardenbus.common.api.kinds import KINDS
from gardenbus.common.api.owners import controller_reference
from gardenbus.placement.domain.policy_snapshots import index_of, is_active

HISTORY = 10
"""Snapshots of an override that are kept."""


class OverridePlan(msgspec.Struct, frozen=True):
    """Writes, in this order."""

    created: Document | None = None
    """The snapshot of the present spec, where there is none."""

    relabelled: StoredObject | None = None
    """The snapshot of the present spec, where it is not labelled as the latest."""

    retired: tuple[StoredObject, ...] = ()
    """Snapshots that are no longer the latest."""

    deleted: tuple[StoredObject, ...] = ()
    """Snapshots beyond the history's limit."""


def plan_override(override: StoredObject, snapshots: Sequence[StoredObject]) -> OverridePlan:
    """Plan the writes that make exactly the snapshot of an override's spec the latest."""
    document = override.document()
    wanted = spec_hash(document)
    living = sorted((each for each in snapshots if not each.is_deleting), key=_index)
    latest = living[-1] if living else None
    if latest is not None and section(latest.document(), "spec").get("overrideHash") == wanted:
        return OverridePlan(
            relabelled=None if is_active(latest) else latest,
            retired=tuple(each for each in living[:-1] if is_active(each)),
            deleted=tuple(living[:-HISTORY]),
        )
    return OverridePlan(
        created=_snapshot(override, document, wanted, 1 + max(map(_index, snapshots), default=-1)),
        retired=tuple(each for each in living if is_active(each)),
        deleted=tuple(living[: max(0, len(living) + 1 - HISTORY)]),
    )


def spec_hash(override: Document) -> str:
    """Return the SHA-256 of an override's spec, base64."""
    return base64.b64encode(hashlib.sha256(canonical(section(override, "spec"))).digest()).decode()


def labelled_latest(snapshot: Document) -> Document:
    """Return a snapshot that is the latest again."""
    metadata = section(snapshot, "metadata")
    labels = {**section(metadata, "labels"), IS_LATEST_LABEL: "true"}
    return {**snapshot, "metadata": {**metadata, "labels": labels}}


def _snapshot(override: StoredObject, document: Document, spec_hash: str, index: int) -> Document:
    key, kind = override.key, KINDS[snapshot_kind(override.key.namespace)]
    metadata: Document = {
        "name": f"{key.name}-{index}",
        "labels": {OVERRIDE_LABEL: key.name, IS_LATEST_LABEL: "true", OVERRIDE_INDEX_LABEL: str(index)},
        "ownerReferences": [controller_reference(document)],
    }
    if key.namespace:
        metadata["namespace"] = key.namespace
    spec = {"overrideSpec": section(document, "spec"), "overrideHash": spec_hash}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}


def _index(stored: StoredObject) -> int:
    return index_of(stored, OVERRIDE_INDEX_LABEL)
