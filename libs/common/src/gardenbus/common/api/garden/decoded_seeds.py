"""The row of a Seed from its JSON, for those who read thousands of them.

Only what the row shows is decoded, in one pass; a Seed of another shape than its kind has is read as any document is.
Both ways give the same row.
"""

from typing import Any

import msgspec

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.garden.rows import SeedRow, capacity_of, seed_row
from gardenbus.common.api.garden.seeds import BACKUP_BUCKETS_READY
from gardenbus.common.api.numbers import whole_number


class _SeedMetadata(msgspec.Struct, frozen=True, gc=False):
    name: str
    namespace: str | None = None
    resourceVersion: str | None = None  # noqa: N815  (as in JSON, here and below)
    creationTimestamp: str | None = None  # noqa: N815
    deletionTimestamp: str | None = None  # noqa: N815
    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None


class _SeedProvider(msgspec.Struct, frozen=True, gc=False):
    type: str | None = None
    region: str | None = None
    zones: list[str] | None = None


class _SeedScheduling(msgspec.Struct, frozen=True, gc=False):
    visible: bool | None = None


class _SeedSettings(msgspec.Struct, frozen=True, gc=False):
    scheduling: _SeedScheduling | None = None


class _SeedTaint(msgspec.Struct, frozen=True, gc=False):
    key: str | None = None


class _SeedSpec(msgspec.Struct, frozen=True, gc=False):
    provider: _SeedProvider | None = None
    settings: _SeedSettings | None = None
    taints: list[_SeedTaint] | None = None
    backup: Any = None


class _SeedCondition(msgspec.Struct, frozen=True, gc=False):
    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    lastHeartbeatTime: str | None = None  # noqa: N815


class _SeedAllocatable(msgspec.Struct, frozen=True, gc=False):
    shoots: str | int | float | None = None


class _SeedStatus(msgspec.Struct, frozen=True, gc=False):
    conditions: list[_SeedCondition] | None = None
    allocatable: _SeedAllocatable | None = None


class _Seed(msgspec.Struct, frozen=True, gc=False):
    metadata: _SeedMetadata
    spec: _SeedSpec | None = None
    status: _SeedStatus | None = None


_NO_CONDITION = _SeedCondition()
_decode_seed = json_decoder(_Seed)
_decode_document = json_decoder(dict[str, object])


def decode_seed_row(body: bytes) -> SeedRow | None:
    """The row of a Seed in JSON; None for what is no JSON object."""
    try:
        return _row_of(_decode_seed(body))
    except msgspec.ValidationError:
        pass
    except msgspec.DecodeError:
        return None
    try:
        return seed_row(_decode_document(body))
    except msgspec.DecodeError:
        return None


def _row_of(seed: _Seed) -> SeedRow:
    metadata, spec, status = seed.metadata, seed.spec or _SeedSpec(), seed.status or _SeedStatus()
    provider, settings = spec.provider or _SeedProvider(), spec.settings or _SeedSettings()
    conditions = status.conditions or ()
    ready = next((each for each in conditions if each.type == "GardenletReady"), _NO_CONDITION)
    backups = next((each for each in conditions if each.type == BACKUP_BUCKETS_READY), _NO_CONDITION)
    return SeedRow(
        name=metadata.name,
        namespace=metadata.namespace or "",
        version=whole_number(metadata.resourceVersion),
        created=metadata.creationTimestamp or "",
        is_deleting=bool(metadata.deletionTimestamp),
        provider=provider.type or "",
        region=provider.region or "",
        zones=tuple(provider.zones or ()),
        ready=ready.status or "",
        reason=ready.reason or "",
        message=ready.message or "",
        capacity=capacity_of(status.allocatable.shoots if status.allocatable else None),
        is_visible=settings.scheduling is None or settings.scheduling.visible is not False,
        is_cordoned=any(name.endswith("/cordoned-by") for name in metadata.annotations or ()),
        is_managed=bool((metadata.labels or {}).get("set")),
        taints=tuple(taint.key or "" for taint in spec.taints or ()),
        lacks_backups=spec.backup is not None and backups.status != "True",
        last_heartbeat=ready.lastHeartbeatTime or "",
    )
