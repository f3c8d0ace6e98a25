"""Publishes changes to browsers: at most four batches a second, each encoded once for all of them.

A batch has a number, and the last of them are retained, so that a browser can resume after a short interruption; after
a longer one it reloads. Each listener has a queue of its own: one that does not read in time is disconnected, and
delays nobody.
"""

import asyncio
from collections import deque
from collections.abc import Callable

import msgspec

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.rows import SeedRow, TableRow
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.numbers import whole_number
from gardenbus.common.controller.wait import forever
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.dashboard.watch.landscape import DashboardCache, milliseconds
from gardenbus.dashboard.watch.placements import ROW_OF as FLEET_ROW_OF

BATCH_SECONDS = 0.25
"""Interval between batches, as fast as people can read."""

BEAT_SECONDS = 2.0
"""Interval of the keep-alive messages, which carry the heartbeats of seeds; a page without any for 5 s says so."""

KEPT_BATCHES = 240
"""Retained batches: enough for an interruption of a minute at the highest rate."""

KEPT_BYTES = 4 * 1024 * 1024
QUEUE_BATCHES = 64
MANY_SHOOTS = 400
"""Above so many changed shoots only the fact is sent: the browser reloads the rows that it shows."""

MANY_EVENTS = 50

_encode = msgspec.json.Encoder().encode


class ChangeBatch(msgspec.Struct, frozen=True):
    """One message for all listeners. `number` 0 cannot be resumed from."""

    name: str
    number: int
    body: bytes


class FeedListener:
    """One browser. `batches` is its queue; nothing is added once `cut` is set."""

    def __init__(self, backlog: list[ChangeBatch], *, resumed: bool) -> None:
        self.batches: asyncio.Queue[ChangeBatch] = asyncio.Queue(QUEUE_BATCHES)
        self.backlog = backlog
        self.resumed = resumed
        self.cut = asyncio.Event()
        self.began = False
        """True once its response has begun."""

    def push(self, batch: ChangeBatch) -> None:
        """Add a batch to the queue, or disconnect when that is full."""
        try:
            self.batches.put_nowait(batch)
        except asyncio.QueueFull:
            self.cut.set()


class ChangeFeed:
    """Feed of numbered change batches. `epoch` distinguishes the numbers of different processes."""

    def __init__(
        self,
        cache: DashboardCache,
        clock: Clock,
        epoch: str,
        *,
        on_slow_listener: Callable[[], None] = lambda: None,
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        self._cache = cache
        self._clock = clock
        self._on_slow_listener = on_slow_listener
        self._kept_bytes = kept_bytes
        self.epoch = epoch
        self.number = 0
        self._retained: deque[ChangeBatch] = deque()
        self._retained_bytes = 0
        self._listeners: set[FeedListener] = set()
        self._changed_keys: dict[ObjectKey, None] = {}
        self._events: deque[Document] = deque(maxlen=MANY_EVENTS)
        self._pending = asyncio.Event()
        self._sent_heartbeats: dict[str, int] = {}
        self._was_synced = False
        cache.subscribe(self._add_changed, self._add_event)

    @property
    def listeners(self) -> int:
        """Number of connected browsers."""
        return len(self._listeners)

    def listen(self, last_event_id: str = "") -> FeedListener:
        """Add a listener, with the batches since the id that it names. Without `resumed` it has to reload."""
        epoch, _, text = last_event_id.rpartition("-")
        number = whole_number(text, -1)
        backlog: list[ChangeBatch] = []
        is_resumed = False
        if epoch == self.epoch and 0 <= number <= self.number:
            oldest = self._retained[0].number if self._retained else self.number + 1
            is_resumed = number >= oldest - 1
            backlog = [batch for batch in self._retained if batch.number > number] if is_resumed else []
        listener = FeedListener(backlog, resumed=is_resumed)
        self._listeners.add(listener)
        return listener

    def leave(self, listener: FeedListener) -> None:
        """Remove a listener."""
        self._listeners.discard(listener)

    def cut_all(self) -> None:
        """Disconnect all listeners: the process stops."""
        for listener in self._listeners:
            listener.cut.set()

    async def run(self) -> None:
        """Publish batches for ever."""
        while True:
            await self._pending.wait()
            self._pending.clear()
            self.publish()
            await self._clock.sleep(BATCH_SECONDS)

    async def run_heartbeats(self) -> None:
        """Publish keep-alive messages for ever."""
        await forever(self.publish_heartbeats, period_seconds=BEAT_SECONDS, sleep=self._clock.sleep, is_immediate=False)

    def publish(self) -> None:
        """Publish the changes since the last batch, if any."""
        if not self._changed_keys and not self._events and self._was_synced == self._cache.synced:
            return
        if self._cache.synced != self._was_synced:
            self._was_synced = self._cache.synced
        self.number += 1
        batch = ChangeBatch("changes", self.number, _encode(self._content()))
        self._changed_keys.clear()
        self._events.clear()
        self._retain(batch)
        self._push(batch)

    def publish_heartbeats(self) -> None:
        """Publish new heartbeats, as a keep-alive."""
        heartbeats = {seed: milliseconds(at) for seed, at in self._cache.heartbeats.items()}
        new = {seed: at for seed, at in heartbeats.items() if self._sent_heartbeats.get(seed) != at}
        self._sent_heartbeats = heartbeats
        content = {"now": milliseconds(self._clock.now()), "heartbeats": new}
        self._push(ChangeBatch("beat", 0, _encode(content)))
        if self._cache.synced != self._was_synced:
            self._pending.set()

    def _content(self) -> Document:
        changed: dict[str, list[object]] = {}
        gone: list[tuple[str, str, str]] = []
        shoots = sum(key.kind == "shoot" for key in self._changed_keys)
        for key in self._changed_keys:
            if (key.kind == "shoot" and shoots > MANY_SHOOTS) or key.kind in FLEET_ROW_OF:
                continue
            row = self._cache.row(key)
            if row is None:
                gone.append(key)
            else:
                changed.setdefault(key.kind, []).append(self._shown(row))
        shown_kinds = ("shoot", "seed", "managedseedset", "seedautoscaler")
        return {
            "at": timestamp(self._clock.now()),
            **{kind: changed[kind] for kind in shown_kinds if kind in changed},
            "gone": gone,
            "manyShoots": shoots > MANY_SHOOTS,
            "fleet": any(key.kind in FLEET_ROW_OF for key in self._changed_keys),
            "events": list(self._events),
            "summary": self._cache.summary(),
        }

    def _shown(self, row: TableRow) -> object:
        return self._cache.shown_seed(row) if isinstance(row, SeedRow) else row

    def _add_changed(self, key: ObjectKey) -> None:
        self._changed_keys[key] = None
        self._pending.set()

    def _add_event(self, event: Document) -> None:
        self._events.append(event)
        self._pending.set()

    def _retain(self, batch: ChangeBatch) -> None:
        self._retained.append(batch)
        self._retained_bytes += len(batch.body)
        while len(self._retained) > KEPT_BATCHES or (
            self._retained_bytes > self._kept_bytes and len(self._retained) > 1
        ):
            self._retained_bytes -= len(self._retained.popleft().body)

    def _push(self, batch: ChangeBatch) -> None:
        for listener in tuple(self._listeners):
            listener.push(batch)
            if listener.cut.is_set():
                self._listeners.discard(listener)
                self._on_slow_listener()
