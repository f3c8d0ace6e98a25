"""Journal of a schedule: what truly happened, written where it happens, so that the end can be compared with it.

An order counts from the moment in which REQUESTS has stored it: the last one stored on an object decides. When a server
goes back in time, orders of which nothing is left anywhere become *doubtful*: they may be lost with the copy. When both
have, all that were stored before are: a copy of one may hold what a copy of the other has seen undone. One whose
deliveries were used up by restarts and deaths is rejected: kept on its own subject, and told.
"""

import re
from collections import defaultdict
from dataclasses import dataclass, field

from gardenbus.apiserver.messages.durable_requests import LAST_WAIT
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.keys import Header, ObjectKey
from gardenbus.common.controller.batch_consumer import BatchSettings
from gardenbus.common.ports.bus import QueueMessage, StreamMessage
from gardenbus.common.ports.store import RequestOrigin
from tests.simulation.client import LABEL, NAMESPACE, ORDER, Order
from tests.simulation.gardenlet import PROGRESS
from tests.support.memory.bus import MemoryServer
from tests.support.memory.state import MemoryState

_ORDER_OF_BODY = re.compile(rb'"%s":"(\d+)"' % LABEL.encode())


class InvariantBroken(Exception):
    """Something happened that never may."""


@dataclass
class StoredOrder:
    """An order that REQUESTS has stored."""

    order: Order
    sequence: int
    is_doubtful: bool = False
    is_rejected: bool = False

    @property
    def is_optional(self) -> bool:
        """It may count, or not: it may be lost with what a restore took away, or it was delivered too often."""
        return self.is_doubtful or self.is_rejected


@dataclass
class Journal:
    """See the module."""

    orders: dict[int, Order] = field(default_factory=dict[int, Order])
    stored: defaultdict[str, list[StoredOrder]] = field(default_factory=lambda: defaultdict(list))
    removed: set[str] = field(default_factory=set[str])
    removals: dict[ObjectKey, RequestOrigin | None] = field(default_factory=dict[ObjectKey, RequestOrigin | None])
    """The request that the last removal of each object goes back to; its tombstone may have been collected."""
    marked: set[str] = field(default_factory=set[str])
    running: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    progress: dict[str, int] = field(default_factory=dict[str, int])
    announced: dict[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])
    seen: dict[tuple[str, ObjectKey], int] = field(default_factory=dict[tuple[str, ObjectKey], int])
    restores: set[str] = field(default_factory=set[str])
    deliveries: dict[int, int] = field(default_factory=dict[int, int])
    impatient: set[int] = field(default_factory=set[int])
    """Requests that were decided on, at last, while earlier ones were in flight."""
    forgotten: set[str] = field(default_factory=set[str])
    """Control planes that neither server knew when both had gone back: their names may be given anew."""

    # ------------------------------------------------------------------------------------------ what is written

    def on_removal(self, uid: str, key: ObjectKey, origin: RequestOrigin | None) -> None:
        """The store has removed an object."""
        self.removed.add(uid)
        self.removals[key] = origin

    def on_request(self, message: StreamMessage) -> None:
        """REQUESTS has stored a message."""
        if number := message.headers.get(ORDER):
            order = self.orders[int(number)]
            self.stored[order.name].append(StoredOrder(order, message.sequence))

    def on_delivery(self, stream: str, message: QueueMessage) -> None:
        """An actor has fetched a message, for the how manyth time."""
        if stream == "REQUESTS":
            self.deliveries[message.message.sequence] = message.deliveries

    def on_impatience(self, sequence: int) -> None:
        """An apiserver waits no longer for the requests before one: it decides on it, if it came often enough."""
        if self.deliveries.get(sequence, 0) >= LAST_WAIT:
            self.impatient.add(sequence)

    def on_rejection(self, message: StreamMessage) -> None:
        """A message is kept as rejected: not lost, if restarts and deaths have used its deliveries up."""
        if found := _ORDER_OF_BODY.search(message.body):
            for stored in self.stored[self.orders[int(found[1])].name]:
                is_it = stored.order.number == int(found[1])
                stored.is_rejected |= is_it and self.deliveries.get(stored.sequence, 0) > BatchSettings().max_deliveries

    def on_report(self, message: StreamMessage) -> None:
        """REPORTS has stored a message."""
        if number := message.headers.get(PROGRESS):
            self.progress[message.headers[Header.UID]] = int(number)

    def on_announcement(self, message: StreamMessage) -> None:
        """OBJECTS or BINDINGS has stored a message: no version goes back, and what has a tombstone was removed."""
        text = message.headers.get(Header.VERSION)
        if message.marker is not None or text is None:
            return
        version, verb, uid = int(text), message.headers.get(Header.VERB, ""), message.headers.get(Header.UID, "")
        last, _ = self.announced.get(message.subject, (0, ""))
        if version < last and "redis" not in self.restores:  # an announcement of what was lost may arrive late
            raise InvariantBroken(f"{message.subject} goes from version {last} back to {version}")
        self.announced[message.subject] = (version, uid)
        if verb == "deleted" and Header.ROLE not in message.headers and uid not in self.removed:
            raise InvariantBroken(f"{message.subject}: a tombstone of {uid}, which was never removed")

    def on_observed(self, observer: str, key: ObjectKey, version: int | None) -> None:
        """An informer has an object in another version, or no more."""
        if version is None:
            return
        last = self.seen.get((observer, key), 0)
        if version < last and len(self.restores) < 2:  # what both have lost, nobody can know any more
            raise InvariantBroken(f"{observer} sees {key} go from version {last} back to {version}")
        self.seen[observer, key] = version

    def on_begin(self, seed: str, uid: str) -> None:
        """A gardenlet begins to run a control plane."""
        self.running[uid].add(seed)
        if len(self.running[uid]) > 1 and "redis" not in self.restores:
            raise InvariantBroken(f"{uid} runs on {sorted(self.running[uid])}")

    def on_end(self, seed: str, uid: str) -> None:
        """A gardenlet tears a control plane down."""
        self.running[uid].discard(seed)
        if uid not in self.removed and uid not in self.marked and uid not in self.forgotten:
            raise InvariantBroken(f"{seed} tears {uid} down, which nobody has deleted")

    # ------------------------------------------------------------------------------------------ restores

    def on_restore(self, what: str, state: MemoryState, server: MemoryServer) -> None:
        """A server has gone back in time: find out which orders nobody has any more."""
        self.restores.add(what)
        if what == "nats":
            self.reread(server)
        else:
            self._forget_lost(state, server)
        if len(self.restores) > 1:
            uids = state.uids
            announced = {each.headers.get(Header.UID) for each in server.stream("OBJECTS").messages.values()}
            self.forgotten |= {uid for uid in self.running if uid not in uids and uid not in announced}
        requests = server.stream("REQUESTS")
        in_flight = {sequence for consumer in requests.consumers.values() for sequence in consumer.in_flight}
        waiting = {each.headers.get(ORDER) for each in requests.messages.values() if each.sequence not in in_flight}
        for name, orders in self.stored.items():
            for stored in reversed(orders):
                is_kept = str(stored.order.number) in waiting or _is_in_effect(stored.order, state, server)
                stored.is_doubtful = not is_kept or len(self.restores) > 1
                if not stored.is_doubtful:
                    break
            self.stored[name] = orders

    def reread(self, server: MemoryServer) -> None:
        """Versions go on from what the copy has; of reports only those that come from now on are sure."""
        self.announced = {
            message.subject: (int(message.headers.get(Header.VERSION, "0")), message.headers.get(Header.UID, ""))
            for stream in ("OBJECTS", "BINDINGS")
            for message in server.stream(stream).messages.values()
        }
        self.progress.clear()

    def _forget_lost(self, state: MemoryState, server: MemoryServer) -> None:
        """Versions that were read, and that neither side has: observers go back to what there is."""
        for (observer, key), seen in self.seen.items():
            row, tombstone = state.rows.get(key), state.tombstone(key)
            last = server.stream("OBJECTS").last_on(f"garden.changed.{key.tail}")
            recorded = (
                row.stored.version if row else 0,
                tombstone.version if tombstone else 0,
                int(last.headers.get(Header.VERSION, "0")) if last else 0,
            )
            self.seen[observer, key] = min(seen, max(recorded))

    def admissible(self, name: str) -> list[StoredOrder]:
        """Orders of which one must have decided what became of an object, the last first."""
        found: list[StoredOrder] = []
        for stored in reversed(self.stored[name]):
            found.append(stored)
            if not stored.is_optional:
                break
        return found


def label_of(document: Document) -> int:
    """The number of the order that an object has the content of; 0 without."""
    return int(section(document, "metadata", "labels").get(LABEL) or 0)


def _is_in_effect(order: Order, state: MemoryState, server: MemoryServer) -> bool:
    """True if the store, or what has been announced, shows an order."""
    key = ObjectKey("shoot", NAMESPACE, order.name)
    row = state.rows.get(key)
    last = server.stream("OBJECTS").last_on(f"garden.changed.{key.tail}")
    if order.verb == "apply":
        text = b'"%s":"%d"' % (LABEL.encode(), order.number)
        in_store = row is not None and label_of(row.stored.document()) == order.number
        return in_store or (last is not None and text in last.body)
    in_store = state.tombstone(key) is not None if row is None else row.stored.is_deleting
    is_announced = last is not None and (
        last.headers.get(Header.VERB) == "deleted" or b'"deletionTimestamp"' in last.body
    )
    return in_store or is_announced
