"""Cache of objects of some kinds, kept current: list the store, follow the bus.

Order of events (why nothing is missed and nothing removed comes back):

1. S: OBJECTS' incarnation and last sequence, *then* V: the store's version when the list began, then the list.
2. Follow OBJECTS from S + 1. An event with a version <= V is in the list already, whatever object it is
   about; after that an event counts only if its version is above the object's own (or its last removal's).
   OBJECTS is in the store's order, so that only what was under way for long is older than a removal: removals are
   remembered as long as their tombstones, and no more than MOST_REMOVALS of them.
3. List again when the follower had to restart or was cut for half a tombstone's life, and when versions have leapt: the
   store was opened anew. The list counts, also where it is older than the cache: the store (or both) may have gone
   back, and lost what was listed before it was announced.

`unblock_index` only grows once every change up to it has been seen (see the relay's domain/announcements.py).
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime

import msgspec
import structlog

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import StoredObject, split_encoded
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.api.numbers import whole_number
from gardenbus.common.controller import informer_metrics as metrics
from gardenbus.common.controller.unreadable import skip_unreadable
from gardenbus.common.controller.wait import RETRY_SECONDS
from gardenbus.common.errors import Transient, Unavailable
from gardenbus.common.ports.bus import TOMBSTONE_TTL, Bus, Follower, FollowRestarted, StreamMessage
from gardenbus.common.ports.store import VERSION_LEAP, Store

_log = structlog.stdlib.get_logger()

Callback = Callable[[ObjectKey, StoredObject | None, StoredObject | None], None]

MOST_REMOVALS = 100_000
"""Removals that are remembered: some 30 MB."""

REOPENED_SECONDS = 30.0
"""Interval at which the store's version is read where no change shows it: that it leapt must not stay unnoticed."""


class _Owned(msgspec.Struct, rename="camel"):
    """Metadata that the store owns and no header carries."""

    creation_timestamp: str
    generation: int = 0
    deletion_timestamp: str = ""


class _Announced(msgspec.Struct):
    metadata: _Owned


_decode_owned = json_decoder(_Announced)


def stored_from(key: ObjectKey, body: bytes, headers: Mapping[str, str]) -> StoredObject:
    """Build an object from its announcement."""
    owned = _decode_owned(body).metadata
    return StoredObject(
        key=key,
        parts=split_encoded(body),
        uid=headers[Header.UID],
        version=int(headers[Header.VERSION]),
        generation=owned.generation,
        created_at=owned.creation_timestamp,
        deleting_at=owned.deletion_timestamp,
        scheduling_generation=whole_number(headers.get(Header.SCHEDULING_GENERATION)),
    )


class _RelistNeeded(Transient):
    """The cache may be stale; the list must be read again."""


class Informer:
    """Cached objects of some kinds. Callbacks run synchronously, in order, and must not block.

    A kind in `namespaces` is cached in that namespace only: the others are neither listed nor followed.
    """

    def __init__(
        self,
        store: Store,
        bus: Bus,
        subjects: Subjects,
        kinds: Sequence[str],
        namespaces: Mapping[str, str] | None = None,
    ) -> None:
        self._store = store
        self._bus = bus
        self._subjects = subjects
        self._kinds = tuple(kinds)
        self._namespaces = dict(namespaces or {})
        self._objects: dict[str, dict[ObjectKey, StoredObject]] = {kind: {} for kind in kinds}
        self._removed: OrderedDict[ObjectKey, tuple[int, datetime]] = OrderedDict()
        self._assumed: dict[ObjectKey, StoredObject] = {}
        self._listed_version = 0
        self._highest_version = 0
        self._callbacks: list[tuple[Callback, frozenset[str]]] = []
        self._synced = asyncio.Event()
        self._unblock_advanced = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self._label = "-".join(self._kinds)
        self._lag = metrics.LAG_SECONDS.labels(self._label)
        self.unblock_index = 0

    def subscribe(self, callback: Callback, kinds: Collection[str] = ()) -> None:
        """Call back on every change, or those of some kinds: (key, old or None, new or None)."""
        self._callbacks.append((callback, frozenset(kinds or self._kinds)))

    def objects(self, kind: str) -> Mapping[ObjectKey, StoredObject]:
        """The objects of a kind as they stand; a live view."""
        return self._objects[kind]

    def assume(self, stored: StoredObject) -> None:
        """Assume what this process has just written, instead of decoding it from its announcement.

        It becomes visible only when that version is announced.
        """
        cached = self._objects[stored.key.kind].get(stored.key)
        if cached is None or cached.version < stored.version:
            self._assumed[stored.key] = stored

    @property
    def synced(self) -> bool:
        """True once a list has been read."""
        return self._synced.is_set()

    async def start(self) -> None:
        """Start following; return when the first list is in."""
        self._task = asyncio.create_task(self._run(), name=f"informer-{'-'.join(self._kinds)}")
        synced = asyncio.create_task(self._synced.wait())
        try:
            done, _ = await asyncio.wait({self._task, synced}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            synced.cancel()
        if self._task in done:
            self._task.result()

    async def stop(self) -> None:
        """Stop following."""
        self._stopping = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def wait_for_unblock_index(self, unblock_index: int, timeout_seconds: float) -> bool:
        """Wait until every change up to an unblock index has been seen; False when it takes too long."""
        try:
            async with asyncio.timeout(timeout_seconds), self._unblock_advanced:
                await self._unblock_advanced.wait_for(lambda: self.unblock_index >= unblock_index)
        except TimeoutError:
            return False
        return True

    async def _run(self) -> None:
        while not self._stopping:
            try:
                await self._list_and_follow()
            except* _RelistNeeded as group:
                _log.info("informer.relisted", kinds=self._kinds, reason=str(group.exceptions[0]))
            except* Transient as group:
                _log.warning("informer.interrupted", kinds=self._kinds, reason=str(group.exceptions[0]))
                await asyncio.sleep(RETRY_SECONDS)

    async def _list_and_follow(self) -> None:
        stream = self._subjects.stream("OBJECTS")
        position = await self._bus.position(stream)
        await self._list()
        filters = [self._subjects.changed_kind(kind, self._namespaces.get(kind)) for kind in self._kinds]
        async with (
            self._bus.follow(stream, filters, after_sequence=position.sequence) as follower,
            asyncio.TaskGroup() as tasks,
        ):
            metrics.SILENT_SECONDS.labels(self._label).set_function(lambda: follower.silent_seconds)
            tasks.create_task(self._consume(follower))
            tasks.create_task(_watch_silence(follower))
            tasks.create_task(self._watch_version())

    async def _consume(self, follower: Follower) -> None:
        async for event in follower:
            if isinstance(event, FollowRestarted):
                raise _RelistNeeded(event.reason)
            if isinstance(event, StreamMessage):
                with skip_unreadable(event):
                    await self._handle(event)
                self._lag.observe(max(0.0, time.time() - event.at.timestamp()))

    async def _list(self) -> None:
        listed: dict[ObjectKey, StoredObject] = {}
        version = unblock_index = 0
        for kind in self._kinds:
            token: str | None = None
            first = True
            while first or token:
                page = await self._store.list_page(kind, self._namespaces.get(kind), continue_token=token)
                if first:
                    version = min(version or page.version, page.version)
                    unblock_index = min(unblock_index or page.unblock_index, page.unblock_index)
                first, token = False, page.continue_token
                listed |= {stored.key: stored for stored in page.objects}
        self._listed_version = self._highest_version = version
        for kind in self._kinds:
            for key in [key for key in self._objects[kind] if key not in listed]:
                self._replace(key, None)
        for key, stored in listed.items():
            cached = self._objects[key.kind].get(key)
            if cached is None or stored.version != cached.version or stored.uid != cached.uid:
                self._replace(key, stored)
        self._removed.clear()
        self._assumed.clear()
        metrics.LISTS.labels(self._label).inc()
        metrics.OBJECTS.labels(self._label).set_function(lambda: sum(map(len, self._objects.values())))
        self._synced.set()
        await self._advance_unblock_index(unblock_index)

    async def _watch_version(self) -> None:
        while True:
            await asyncio.sleep(REOPENED_SECONDS)
            with suppress(Unavailable):
                self._note_version((await self._store.list_page(self._kinds[0], limit=1)).version)

    def _note_version(self, version: int) -> None:
        """Raise when the store was opened anew since the list was read."""
        if version > self._highest_version + VERSION_LEAP // 2:  # the copy may be older than what was seen
            raise _RelistNeeded("the store was opened anew")
        self._highest_version = max(self._highest_version, version)

    async def _handle(self, event: StreamMessage) -> None:
        if Header.VERSION in event.headers:
            key = ObjectKey.from_tail(event.subject.removeprefix(f"{self._subjects.prefix}.changed."))
            version = int(event.headers[Header.VERSION])
            self._note_version(version)
            await self._apply(key, event, version)
        await self._advance_unblock_index(whole_number(event.headers.get(Header.UNBLOCK_INDEX)))

    async def _apply(self, key: ObjectKey, event: StreamMessage, version: int) -> None:
        assumed = self._assumed.pop(key, None)
        cached = self._objects[key.kind].get(key)
        removed, _ = self._removed.get(key, (0, None))
        self._forget_removals(event.at)
        if version <= max(self._listed_version, cached.version if cached else 0, removed):
            return
        self._removed.pop(key, None)
        if event.headers.get(Header.VERB) == "deleted":
            self._removed[key] = version, event.at
            self._replace(key, None)
        elif Header.TOO_LARGE in event.headers:
            fetched = await self._store.get(key)
            if fetched is not None and fetched.version >= version:
                self._replace(key, fetched)
        elif assumed is not None and (assumed.version, assumed.uid) == (version, event.headers[Header.UID]):
            self._replace(key, assumed)
        else:
            self._replace(key, stored_from(key, event.body, event.headers))

    def _forget_removals(self, now: datetime) -> None:
        removals = self._removed
        while removals and (len(removals) > MOST_REMOVALS or next(iter(removals.values()))[1] + TOMBSTONE_TTL < now):
            removals.popitem(last=False)

    async def _advance_unblock_index(self, unblock_index: int) -> None:
        if unblock_index > self.unblock_index:
            async with self._unblock_advanced:
                self.unblock_index = unblock_index
                self._unblock_advanced.notify_all()

    def _replace(self, key: ObjectKey, new: StoredObject | None) -> None:
        objects = self._objects[key.kind]
        old = objects.pop(key, None)
        if new is not None:
            objects[key] = new
        if old is None and new is None:
            return
        for callback, kinds in self._callbacks:
            if key.kind in kinds:
                callback(key, old, new)


async def _watch_silence(follower: Follower) -> None:
    """Relist once nothing was received for half of a tombstone's life: some may have come and gone."""
    limit = TOMBSTONE_TTL.total_seconds() / 2
    while follower.silent_seconds < limit:  # noqa: ASYNC110 - silence is the absence of an event
        await asyncio.sleep(limit / 20)
    raise _RelistNeeded("the stream was silent for too long")


def log_unreadable(key: ObjectKey, reason: str) -> None:
    """Log an object of an informer that its reader cannot decode."""
    _log.warning("object.unreadable", object=str(key), reason=reason)
