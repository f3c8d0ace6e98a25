"""Watch of objects: begins with a list, and goes on with the OBJECTS stream."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Literal, NamedTuple

from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.client.following import follow
from gardenbus.cli.client.resource_args import ResourceArgs
from gardenbus.cli.manifests.files import as_mapping
from gardenbus.common.api.decoding import decode_json
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import Header, ObjectKey
from gardenbus.common.api.numbers import whole_number
from gardenbus.common.api.watches import WatchedKind, WatchedUpTo
from gardenbus.common.ports.bus import FollowRestarted, StreamMessage

Predicate = Callable[[Document], bool]


class WatchEvent(NamedTuple):
    """One change. `document` is the object after it, or the last state before its deletion."""

    verb: Literal["added", "modified", "deleted"]
    key: ObjectKey
    document: Document


class WatchCache:
    """Last state of each object, and the watch event that a new state makes. Pure."""

    def __init__(self, wanted: Sequence[ResourceArgs], namespace: str | None, predicate: Predicate | None) -> None:
        self._wanted = {meant.kind: meant for meant in wanted}
        self._namespace = namespace
        self._predicate = predicate
        self._seen: dict[ObjectKey, Document] = {}

    def note(self, kind: str, document: Document) -> None:
        """Remember an object that a list showed."""
        metadata = as_mapping(document.get("metadata"))
        self._seen[ObjectKey(kind, metadata.get("namespace") or "", str(metadata.get("name")))] = document

    def is_selected(self, key: ObjectKey) -> bool:
        """True when an object is one of the requested ones."""
        wanted = self._wanted.get(key.kind)
        if wanted is None or (
            self._namespace is not None and wanted.is_namespaced and key.namespace != self._namespace
        ):
            return False
        return not wanted.names or key.name in wanted.names or f"{key.namespace}/{key.name}" in wanted.names

    def change(self, key: ObjectKey, document: Document | None) -> WatchEvent | None:
        """Watch event for a new state (None: deleted); None when it is old, or the object was and is not selected."""
        before = self._seen.get(key)
        if document is not None and before is not None and _version(document) <= _version(before):
            return None
        if document is None or (self._predicate is not None and not self._predicate(document)):
            if before is None:
                return None
            del self._seen[key]
            return WatchEvent("deleted", key, before)
        self._seen[key] = document
        return WatchEvent("modified" if before is not None else "added", key, document)


def _version(document: Document) -> int:
    return whole_number(as_mapping(document.get("metadata")).get("resourceVersion"))


def scopes_of(wanted: Sequence[ResourceArgs], namespace: str | None) -> list[WatchedKind]:
    """Kinds and namespaces to watch for arguments."""
    scopes: dict[WatchedKind, None] = {}
    for meant in wanted:
        prefixes = {name.rpartition("/")[0] for name in meant.names}
        named = sorted(prefixes) if namespace is None and prefixes and "" not in prefixes else [namespace]
        scopes |= {WatchedKind(meant.kind, each if meant.is_namespaced else None): None for each in named}
    return list(scopes)


async def changes(
    api: ApiClient,
    watch_cache: WatchCache,
    scopes: Sequence[WatchedKind],
    after: WatchedUpTo,
    *,
    on_restart: Callable[[], None],
) -> AsyncGenerator[WatchEvent]:
    """Changes after a position of the OBJECTS stream, until the caller has enough. Raises ApiError, Unavailable."""
    async with aclosing(follow(api, scopes, after)) as following:
        async for event in following:
            if isinstance(event, FollowRestarted):
                on_restart()
            elif isinstance(event, StreamMessage) and event.marker is None:
                key = ObjectKey.from_tail(event.subject.removeprefix(f"{api.subjects.prefix}.changed."))
                if watch_cache.is_selected(key) and (change := watch_cache.change(key, await _state(api, key, event))):
                    yield change


async def _state(api: ApiClient, key: ObjectKey, event: StreamMessage) -> Document | None:
    if event.headers.get(Header.VERB) == "deleted" or (not event.body and Header.TOO_LARGE not in event.headers):
        return None
    if Header.TOO_LARGE in event.headers:
        response = await api.request(f"get.{key.tail}")
        return response.result if response.ok else None
    return decode_json(event.body, dict[str, object])
