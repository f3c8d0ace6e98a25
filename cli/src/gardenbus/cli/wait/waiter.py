"""Waiter: follows objects until each has met its condition."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing

from gardenbus.cli.client.api import ApiClient, api_error
from gardenbus.cli.client.following import present_position
from gardenbus.cli.client.resource_args import ResourceArgs
from gardenbus.cli.client.watch import WatchCache, changes
from gardenbus.cli.manifests.files import as_mapping
from gardenbus.cli.output.console import print_watch_restarted
from gardenbus.cli.wait.conditions import WaitCondition, has_given_up
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.watches import WatchedKind

_NOT_FOUND = 404

OnMet = Callable[[ObjectKey], None]


def key_of(document: Document) -> ObjectKey:
    """The key of a manifest, or of a reference `{"kind", "namespace", "name"}`."""
    metadata = as_mapping(document.get("metadata")) or document
    return ObjectKey(str(document.get("kind")).lower(), metadata.get("namespace") or "", str(metadata.get("name")))


async def wait_until(
    api: ApiClient, conditions: Mapping[ObjectKey, WaitCondition], timeout_seconds: float, on_met: OnMet
) -> Mapping[ObjectKey, Document | None]:
    """Wait until objects meet their conditions, calling `on_met` for each; returns the last states of the others.

    A Failed operation ends the wait for its object. Raises Unavailable.
    """
    scopes = _scopes(api, conditions)
    position = await present_position(api, scopes)
    pending = PendingWaits(conditions, on_met)
    for key in conditions:
        pending.observe(key, await _now(api, key))
    if not pending.keys:
        return pending.left
    watch_cache = WatchCache(pending.meant, None, None)
    for key in pending.keys:
        if (document := pending.left[key]) is not None:
            watch_cache.note(key.kind, document)
    with contextlib.suppress(TimeoutError):
        following = changes(api, watch_cache, scopes, position, on_restart=print_watch_restarted)
        async with asyncio.timeout(timeout_seconds), aclosing(following):
            async for change in following:
                if change.key in pending.keys:
                    pending.observe(change.key, None if change.verb == "deleted" else change.document)
                if not pending.keys:
                    break
    return pending.left


class PendingWaits:
    """Objects that have not met their condition: `left` with their last states, `keys` those that still may."""

    def __init__(self, conditions: Mapping[ObjectKey, WaitCondition], on_met: OnMet) -> None:
        self._conditions = conditions
        self._on_met = on_met
        self.left: dict[ObjectKey, Document | None] = {}
        self.keys: set[ObjectKey] = set(conditions)

    @property
    def meant(self) -> Sequence[ResourceArgs]:
        """Kinds to be watched."""
        return [ResourceArgs(kind, (), is_namespaced=True) for kind in sorted({key.kind for key in self.keys})]

    def observe(self, key: ObjectKey, document: Document | None) -> None:
        """Observe the present state of an object."""
        if self._conditions[key].reached(document):
            self.left.pop(key, None)
            self.keys.discard(key)
            self._on_met(key)
            return
        self.left[key] = document
        if has_given_up(document):
            self.keys.discard(key)


def _scopes(api: ApiClient, keys: Iterable[ObjectKey]) -> list[WatchedKind]:
    """Kinds to watch, as a whole, or their namespaces where somebody may not watch others."""
    found = {WatchedKind(key.kind, (key.namespace or None) if api.user else None) for key in keys}
    return sorted(found, key=str)


async def _now(api: ApiClient, key: ObjectKey) -> Document | None:
    response = await api.request(f"get.{key.tail}")
    if response.ok:
        return response.result
    if response.error.get("code") == _NOT_FOUND:
        return None
    raise api_error(response.error)
