"""Tells browsers what changed: at most four batches a second, each encoded once for all of them.

A batch has a number, and the last of them are kept, so that a browser that was cut off for a while goes on where it
was; one that was away for longer starts anew. Each listener has a queue of its own: whoever does not read in time is
cut off, and nobody waits for it.
"""

import asyncio
from collections import deque
from collections.abc import Callable

import msgspec

from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.dashboard.decide.rows import Row, SeedRow
from gardenbus.dashboard.reconcilers.fleet_view import ROW_OF as FLEET_ROW_OF
from gardenbus.dashboard.reconcilers.view import View, milliseconds

BATCH_SECONDS = 0.25
"""Between two batches: faster than that nobody reads."""

BEAT_SECONDS = 5.0
"""Between two signs of life, which carry the heartbeats of seeds."""

KEPT_BATCHES = 240
"""So a browser may be away for a minute in the busiest times."""

KEPT_BYTES = 4 * 1024 * 1024
QUEUE_BATCHES = 64
MANY_SHOOTS = 400
"""Of more changed shoots only that is told: the browser reads the part that it shows."""

MANY_EVENTS = 50

_encode = msgspec.json.Encoder().encode


class Batch(msgspec.Struct, frozen=True):
    """One message for all listeners. `number` 0 is none that one could go on from."""

    name: str
    number: int
    body: bytes


class Listener:
    """One browser. `batches` is read by whoever serves it; when `is_cut` it is not written any more."""

    def __init__(self, backlog: list[Batch], *, resumed: bool) -> None:
        self.batches: asyncio.Queue[Batch] = asyncio.Queue(QUEUE_BATCHES)
        self.backlog = backlog
        self.resumed = resumed
        self.cut = asyncio.Event()

    def push(self, batch: Batch) -> None:
        """Put a batch into its queue, or cut it off when that is full."""
        try:
            self.batches.put_nowait(batch)
        except asyncio.QueueFull:
            self.cut.set()


class Changes:
    """See the module. `epoch` tells one process' numbers from another's."""

    def __init__(self, view: View, clock: Clock, epoch: str, *, gone_slow: Callable[[], None] = lambda: None) -> None:
        self._view = view
        self._clock = clock
        self._gone_slow = gone_slow
        self.epoch = epoch
        self.number = 0
        self._kept: deque[Batch] = deque()
        self._kept_bytes = 0
        self._listeners: set[Listener] = set()
        self._dirty: dict[ObjectKey, None] = {}
        self._events: deque[Document] = deque(maxlen=MANY_EVENTS)
        self._something = asyncio.Event()
        self._told_beats: dict[str, int] = {}
        self._was_synced = False
        view.subscribe(self._note, self._happened)

    @property
    def listeners(self) -> int:
        """How many browsers listen."""
        return len(self._listeners)

    def listen(self, last_event_id: str = "") -> Listener:
        """A new listener, with what it missed since the id that it names. Without `resumed` it has to reload."""
        epoch, _, number = last_event_id.rpartition("-")
        backlog: list[Batch] = []
        is_resumed = False
        if epoch == self.epoch and number.isdecimal() and int(number) <= self.number:
            oldest = self._kept[0].number if self._kept else self.number + 1
            is_resumed = int(number) >= oldest - 1
            backlog = [batch for batch in self._kept if batch.number > int(number)] if is_resumed else []
        listener = Listener(backlog, resumed=is_resumed)
        self._listeners.add(listener)
        return listener

    def leave(self, listener: Listener) -> None:
        """A listener is gone."""
        self._listeners.discard(listener)

    def cut_all(self) -> None:
        """End all listeners: the process stops."""
        for listener in self._listeners:
            listener.cut.set()

    async def run(self) -> None:
        """Publish batches for ever."""
        while True:
            await self._something.wait()
            self._something.clear()
            self.publish()
            await self._clock.sleep(BATCH_SECONDS)

    async def run_beats(self) -> None:
        """Publish signs of life for ever."""
        while True:
            await self._clock.sleep(BEAT_SECONDS)
            self.publish_beat()

    def publish(self) -> None:
        """Publish what has changed since the last batch, if anything."""
        if not self._dirty and not self._events and self._was_synced == self._view.synced:
            return
        if self._view.synced != self._was_synced:
            self._was_synced = self._view.synced
        self.number += 1
        batch = Batch("changes", self.number, _encode(self._content()))
        self._dirty.clear()
        self._events.clear()
        self._keep(batch)
        self._push(batch)

    def publish_beat(self) -> None:
        """Publish the heartbeats that are new, and that this process lives."""
        beats = {seed: milliseconds(at) for seed, at in self._view.heartbeats.items()}
        new = {seed: at for seed, at in beats.items() if self._told_beats.get(seed) != at}
        self._told_beats = beats
        content = {"now": milliseconds(self._clock.now()), "heartbeats": new}
        self._push(Batch("beat", 0, _encode(content)))
        if self._view.synced != self._was_synced:
            self._something.set()

    def _content(self) -> Document:
        changed: dict[str, list[object]] = {}
        gone: list[tuple[str, str, str]] = []
        shoots = sum(key.kind == "shoot" for key in self._dirty)
        for key in self._dirty:
            if (key.kind == "shoot" and shoots > MANY_SHOOTS) or key.kind in FLEET_ROW_OF:
                continue
            row = self._view.row(key)
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
            "fleet": any(key.kind in FLEET_ROW_OF for key in self._dirty),
            "events": list(self._events),
            "summary": self._view.summary(),
        }

    def _shown(self, row: Row) -> object:
        return self._view.shown_seed(row) if isinstance(row, SeedRow) else row

    def _note(self, key: ObjectKey) -> None:
        self._dirty[key] = None
        self._something.set()

    def _happened(self, event: Document) -> None:
        self._events.append(event)
        self._something.set()

    def _keep(self, batch: Batch) -> None:
        self._kept.append(batch)
        self._kept_bytes += len(batch.body)
        while len(self._kept) > KEPT_BATCHES or (self._kept_bytes > KEPT_BYTES and len(self._kept) > 1):
            self._kept_bytes -= len(self._kept.popleft().body)

    def _push(self, batch: Batch) -> None:
        for listener in tuple(self._listeners):
            listener.push(batch)
            if listener.cut.is_set():
                self._listeners.discard(listener)
                self._gone_slow()
