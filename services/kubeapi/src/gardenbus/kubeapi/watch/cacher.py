"""Cacher: the objects of all kinds at one version, and the watchers that follow them.

Announcements wait until the relay has settled a version: the header `Gardenbus-Settled` says that every change up to it
is in the stream by here. Then those up to it are applied in the order of versions, and each watcher gets its events in
that order. So a list at version M has every change up to M and none above, at every replica, and a watch from M brings
exactly what comes after it.

No history is kept: a watch from N begins with what has changed since N, as it is now, and with the removals since.
Below the floor (removals older than their tombstones may be unknown) it is `ResourceExpired`. A stream that began anew,
and a store that was opened anew, end all watches the same way: clients list again.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.bus import TOMBSTONE_TTL
from gardenbus.common.ports.store import VERSION_LEAP
from gardenbus.kubeapi.domain.statuses import ResourceExpired

_decode = json_decoder(Document)

KEPT_FOR = TOMBSTONE_TTL - timedelta(minutes=5)
"""Age of a removal up to which a watch may begin before it."""

MOST_REMOVALS = 50_000


class CachedObject(msgspec.Struct, frozen=True):
    """An object as it was announced. `added_at`: the version at which it was created, 0 where that is unknown."""

    key: ObjectKey
    uid: str
    version: int
    body: bytes
    added_at: int = 0

    def document(self) -> Document:
        """Decoded anew; of a removal that was never seen alive, its key and uid."""
        if self.body:
            return _decode(self.body)
        namespace = {"namespace": self.key.namespace} if self.key.namespace else {}
        metadata = {"name": self.key.name, **namespace, "uid": self.uid}
        return {"metadata": {**metadata, "resourceVersion": str(self.version)}}


class Announcement(NamedTuple):
    """One announcement: an object, or its removal (`is_removed`, without a body)."""

    object: CachedObject
    at: datetime
    is_removed: bool = False
    is_added: bool = False


class CacheEvent:
    """One event for watchers: the state before and after. What is made of it is made once for all of them."""

    def __init__(self, old: CachedObject | None, new: CachedObject | None, version: int) -> None:
        self.old, self.new, self.version = old, new, version
        self._documents: dict[bool, Document] = {}
        self._matches: dict[tuple[str, bool], bool] = {}
        self.lines: dict[object, bytes] = {}
        """Encoded lines by form and type."""

    @property
    def key(self) -> ObjectKey:
        """The object."""
        found = self.new or self.old
        assert found is not None
        return found.key

    def document(self, *, is_old: bool) -> Document:
        """The state before, in the version of the event, or the state after; nobody may change it."""
        if is_old not in self._documents:
            state = self.old if is_old else self.new
            assert state is not None
            document = state.document()
            if is_old and isinstance(document.get("metadata"), dict):
                document["metadata"]["resourceVersion"] = str(self.version)
            self._documents[is_old] = document
        return self._documents[is_old]

    def matches(self, selector: str, predicate: Callable[[Document], bool] | None, *, is_old: bool) -> bool:
        """True when a state is there and a selector selects it; what was never seen alive may have been selected."""
        state = self.old if is_old else self.new
        if state is None or predicate is None or (is_old and not state.body):
            return state is not None
        cached = self._matches.get((selector, is_old))
        if cached is None:
            cached = self._matches[selector, is_old] = predicate(self.document(is_old=is_old))
        return cached

    def body(self, *, is_old: bool) -> bytes:
        """The state as JSON."""
        if not is_old and self.new is not None:
            return self.new.body
        return encode(self.document(is_old=True))


CacheEventHandler = Callable[[CacheEvent], None]


class _State:
    """Objects at the mark, removals, and what waits for a later mark."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[ObjectKey, CachedObject]] = {}
        self.removals: dict[ObjectKey, CachedObject] = {}
        """In the order of their versions."""
        self.pending: dict[ObjectKey, Announcement] = {}
        self.mark = self.highest = self.floor = 0
        self.ages: deque[tuple[datetime, int]] = deque()
        """By minute, the highest version that was announced in it."""


class Restart(Exception):
    """The store was opened anew: read the stream from its beginning."""


class Cacher:
    """See the module. `receive` all announcements; `changed` observers get each event, before watchers."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._state = _State()
        self._next: _State | None = None
        self._handlers: dict[str, set[CacheEventHandler]] = {}
        self._on_reset: list[Callable[[], None]] = []
        self._on_mark: list[Callable[[], None]] = []
        self.synced = False

    @property
    def mark(self) -> int:
        """The version at which the cache stands."""
        return self._state.mark

    @property
    def count(self) -> int:
        """Objects."""
        return sum(map(len, self._state.objects.values()))

    @property
    def highest(self) -> int:
        """The highest version that was announced; it may not be settled yet."""
        return self._state.highest

    @property
    def is_replaying(self) -> bool:
        """True while the stream is read from its beginning: what is served is from before."""
        return self._next is not None

    def on_reset(self, callback: Callable[[], None]) -> None:
        """Call back when everything was read anew."""
        self._on_reset.append(callback)

    def on_mark(self, callback: Callable[[], None]) -> None:
        """Call back when the mark has moved."""
        self._on_mark.append(callback)

    # ------------------------------------------------------------------------------------------ what comes in

    def begin_replay(self) -> None:
        """The stream is read from its beginning: what there is goes on being served until that is done."""
        self._next = _State()

    def end_replay(self) -> None:
        """The replay is complete: it takes the place of what was there, and ends all watches but the first time."""
        if self._next is None:
            return
        state, self._next = self._next, None
        self._advance(state, max(state.mark, state.highest), is_silent=True)
        self._expire(state)
        was_synced, self.synced = self.synced, True
        if was_synced:
            state.floor = max(state.floor, state.mark)
        self._state = state
        if was_synced:
            for callback in self._on_reset:
                callback()
        self._note_mark()

    def receive(self, change: Announcement | None, settled: int) -> None:
        """One announcement, and the version that it settles (0: none). Raises Restart when versions have leapt."""
        state = self._next or self._state
        if change is not None:
            self._enqueue(state, change)
        if settled:
            self._advance(state, settled, is_silent=state is self._next)
            if state is self._state:
                self._note_mark()

    def _enqueue(self, state: _State, change: Announcement) -> None:
        version = change.object.version
        if state is self._state and version > state.highest + VERSION_LEAP // 2:
            raise Restart
        state.highest = max(state.highest, version)
        waiting = state.pending.get(change.object.key)
        if waiting is None or waiting.object.version < version:
            is_added = change.is_added or (waiting is not None and waiting.is_added and not change.is_removed)
            state.pending[change.object.key] = change._replace(is_added=is_added)
        minute = change.at.replace(second=0, microsecond=0)
        if state.ages and state.ages[-1][0] >= minute:
            state.ages[-1] = (state.ages[-1][0], max(state.ages[-1][1], version))
        else:
            state.ages.append((minute, version))

    def _advance(self, state: _State, settled: int, *, is_silent: bool) -> None:
        ready = [change for change in state.pending.values() if change.object.version <= settled]
        ready.sort(key=lambda change: change.object.version)
        for change in ready:
            del state.pending[change.object.key]
            for event in _applied(state, change):
                if not is_silent:
                    self._emit(event)
        state.mark = max(state.mark, settled)
        state.highest = max(state.highest, settled)

    def _emit(self, event: CacheEvent) -> None:
        for handler in tuple(self._handlers.get(event.key.kind, ())):
            handler(event)

    def _note_mark(self) -> None:
        for callback in self._on_mark:
            callback()

    # ------------------------------------------------------------------------------------------ what is read

    def get(self, key: ObjectKey) -> CachedObject | None:
        """One object."""
        return self._state.objects.get(key.kind, {}).get(key)

    def objects(self, kind: str, namespace: str) -> Collection[CachedObject]:
        """The objects of a kind, of one namespace or of all (""), in the order of namespaces and names."""
        found: Iterable[CachedObject] = self._state.objects.get(kind, {}).values()
        if namespace:
            found = (each for each in found if each.key.namespace == namespace)
        return sorted(found, key=_place)

    def since(self, kind: str, version: int) -> list[CacheEvent]:
        """The changes since a version, in order. Raises ResourceExpired when removals since may be unknown."""
        state = self._state
        self._expire(state)
        if version < state.floor:
            raise ResourceExpired(f"too old resource version: {version} ({state.floor})")
        present = [
            CacheEvent(None if each.added_at > version else each, each, each.version)
            for each in state.objects.get(kind, {}).values()
            if each.version > version
        ]
        removed = [CacheEvent(each, None, each.version) for each in _since(state.removals.values(), version, kind)]
        return sorted([*present, *removed], key=lambda event: event.version)

    def subscribe(self, kind: str, handler: CacheEventHandler) -> Callable[[], None]:
        """Hand over each event of a kind from now on; returns the function that ends it."""
        self._handlers.setdefault(kind, set()).add(handler)
        return lambda: self._handlers[kind].discard(handler)

    def _expire(self, state: _State) -> None:
        """Raise the floor to what is older than its tombstones."""
        until = self._now() - KEPT_FOR
        while state.ages and state.ages[0][0] < until:
            state.floor = max(state.floor, state.ages.popleft()[1])
        removals = state.removals
        while removals:
            key, oldest = next(iter(removals.items()))
            if oldest.version > state.floor and len(removals) <= MOST_REMOVALS:
                break
            del removals[key]
            state.floor = max(state.floor, oldest.version)


def _place(cached: CachedObject) -> tuple[str, str]:
    return cached.key.namespace, cached.key.name


def _since(removals: Iterable[CachedObject], version: int, kind: str) -> Iterator[CachedObject]:
    return (each for each in removals if each.version > version and each.key.kind == kind)


def _applied(state: _State, change: Announcement) -> Iterator[CacheEvent]:
    """Apply a change; the events that it makes."""
    key, version = change.object.key, change.object.version
    objects = state.objects.setdefault(key.kind, {})
    old, removal = objects.get(key), state.removals.get(key)
    if version <= max(old.version if old else 0, removal.version if removal else 0):
        return
    if change.is_removed:
        objects.pop(key, None)
        last = old or (removal if removal is not None and removal.body else None)
        state.removals.pop(key, None)
        body = encode(_in_version(last, version)) if last is not None and last.body else b""
        gone = CachedObject(key, change.object.uid, version, body)
        state.removals[key] = gone
        yield CacheEvent(gone, None, version)
        return
    if old is not None and old.uid != change.object.uid:
        yield CacheEvent(old, None, version - 1)
        old = None
    state.removals.pop(key, None)
    added_at = old.added_at if old is not None else version if change.is_added else 0
    objects[key] = new = msgspec.structs.replace(change.object, added_at=added_at)
    yield CacheEvent(old, new, version)


def _in_version(last: CachedObject, version: int) -> Document:
    document = last.document()
    document["metadata"]["resourceVersion"] = str(version)
    return document
