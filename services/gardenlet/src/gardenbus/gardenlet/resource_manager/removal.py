"""Removes objects that are in no Secret of a ManagedResource any more, all at once."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, cast
from urllib.parse import quote

import structlog

from gardenbus.agent.kubernetes.errors import api_message
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.durations import parse_duration
from gardenbus.common.errors import BadRequest, Conflict, GardenbusError, NotFound
from gardenbus.common.ports.clock import parse_timestamp
from gardenbus.gardenlet.domain.managed_resources.garbage import is_collectable
from gardenbus.gardenlet.domain.managed_resources.names import (
    FINALIZE_DELETION_AFTER,
    KEEP_OBJECT,
    annotations_of,
    finalizers_of,
    is_true,
)
from gardenbus.gardenlet.domain.managed_resources.references import ResourceReference
from gardenbus.gardenlet.resource_manager.target import FIELD_MANAGER, ResourceCluster, ServedObject

_log = structlog.stdlib.get_logger()

_AT_ONCE = 8
_FOREGROUND_GROUPS = frozenset({"apps", "extensions", "batch"})
"""Groups whose objects go after those that they own: a CronJob would leave its Jobs behind by default."""


class RemovalOptions(NamedTuple):
    """`deletes_claims`: of StatefulSets also the volume claims. `now` for grace periods of finalizers."""

    deletes_claims: bool
    now: datetime


async def remove(
    target: ResourceCluster, references: Sequence[ResourceReference], options: RemovalOptions
) -> list[str]:
    """Request the deletion of objects; returns a problem for each that is still there."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(reference: ResourceReference) -> str | None:
        async with slots:
            return await _remove_one(target, reference, options)

    return [each for each in await asyncio.gather(*(one(each) for each in references)) if each is not None]


async def _remove_one(target: ResourceCluster, reference: ResourceReference, options: RemovalOptions) -> str | None:
    pending = f'deletion of old resource "{reference.text}" is still pending'
    try:
        served = await target.served(reference)
        live = await target.read(served) if served is not None else None
        if served is None or live is None or _is_kept(reference, live):
            return None
        if options.deletes_claims and reference.kind == "StatefulSet":
            await _delete_claims(target, reference, live)
        propagation = "Foreground" if reference.group in _FOREGROUND_GROUPS else "Background"
        uid = str(section(live, "metadata").get("uid") or "")
        client = await target.client()
        if not await client.delete(served.path, uid=uid, propagation=propagation):
            return None
        _log.debug("object.deleted", cluster=target.name, object=reference.text)
        after = await target.read(served)
        if after is None:
            return None
        await _finalize(target, served, after, options.now)
    except Conflict:
        return pending
    except NotFound:
        return None
    except GardenbusError as error:
        return f"{pending}: {api_message(error)}"
    return pending


def _is_kept(reference: ResourceReference, live: Document) -> bool:
    """True for an object that shall stay, or that the garbage collector removes."""
    return is_true(annotations_of(live), KEEP_OBJECT) or is_collectable(reference.api_version, live)


async def _delete_claims(target: ResourceCluster, reference: ResourceReference, stateful_set: Document) -> None:
    """Delete the volume claims of a StatefulSet, which have the labels of its selector."""
    spec = section(stateful_set, "spec")
    labels = section(spec, "selector", "matchLabels")
    if not spec.get("volumeClaimTemplates") or not labels:
        return
    client = await target.client()
    path = f"/api/v1/namespaces/{quote(reference.namespace, safe='')}/persistentvolumeclaims"
    selector = ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
    if await client.items(path, labelSelector=selector):
        await client.delete(path, labelSelector=selector)


async def _finalize(target: ResourceCluster, served: ServedObject, live: Document, now: datetime) -> None:
    """Take the finalizers off an object whose grace period for its deletion is over."""
    text = annotations_of(live).get(FINALIZE_DELETION_AFTER)
    deleted_at = parse_timestamp(section(live, "metadata").get("deletionTimestamp"))
    if text is None or deleted_at is None:
        return
    try:
        grace_period = parse_duration(text)
    except ValueError as error:
        raise BadRequest(f"failed parsing duration of {FINALIZE_DELETION_AFTER} annotation: {error}") from error
    if not grace_period or now < deleted_at + grace_period:
        return
    spec_finalizers = cast("list[str]", section(live, "spec").get("finalizers") or [])
    if served.resource.kind == "Namespace" and not served.resource.group and spec_finalizers:
        final: Document = {**live, "spec": {**section(live, "spec"), "finalizers": []}}
        await (await target.client()).replace(f"{served.path}/finalize", final, manager=FIELD_MANAGER)
    if finalizers_of(live):
        await target.patch(served, {"metadata": {"finalizers": None}})
