"""The landscape as it stands, in memory: slim rows of what tables and maps show, kept current by what is announced.

Callbacks hear which key changed. Nothing here waits; whoever feeds it lives in `following`.
"""

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from gardenbus.common.ports.clock import timestamp
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.dashboard.decide.history import Sample, rescaled, with_event, with_row
from gardenbus.dashboard.decide.rows import (
    AutoscalerRow,
    OtherRow,
    Row,
    SeedRow,
    SetRow,
    ShootRow,
    autoscaler_row,
    seed_row,
    set_row,
    shoot_row,
)
from gardenbus.dashboard.reconcilers.fleet_view import ROW_OF as FLEET_ROW_OF
from gardenbus.dashboard.reconcilers.fleet_view import FleetView

LARGEST_EVENTS = 2_000
"""Events that are remembered; those of one object are read anew when its page is opened."""

LONGEST_MESSAGE = 1_000

Changed = Callable[[ObjectKey], None]

_ROW_OF: Mapping[str, Callable[[Document], Row]] = {
    "shoot": shoot_row,
    "seed": seed_row,
    "managedseedset": set_row,
    "seedautoscaler": autoscaler_row,
    **FLEET_ROW_OF,
}


class View:
    """Rows by key. `synced` once what the bus held at the start has been read."""

    def __init__(self) -> None:
        self.shoots: dict[ObjectKey, ShootRow] = {}
        self.seeds: dict[ObjectKey, SeedRow] = {}
        self.sets: dict[ObjectKey, SetRow] = {}
        self.autoscalers: dict[ObjectKey, AutoscalerRow] = {}
        self.fleet = FleetView()
        self.others: dict[ObjectKey, OtherRow] = {}
        self.heartbeats: dict[str, datetime] = {}
        self.events: OrderedDict[str, Document] = OrderedDict()
        self.histories: dict[ObjectKey, list[Sample]] = {}
        self.synced = False
        self.shoots_changed = 0
        """Grows with every change of a shoot's row, so that sorted lists can be kept as long as it stands still."""
        self._tables: Mapping[str, dict[ObjectKey, Any]] = {
            "shoot": self.shoots,
            "seed": self.seeds,
            "managedseedset": self.sets,
            "seedautoscaler": self.autoscalers,
            **self.fleet.tables,
        }
        self._states: Counter[str] = Counter()
        self._placed: defaultdict[str, set[ObjectKey]] = defaultdict(set)
        self._callbacks: list[Changed] = []
        self._event_callbacks: list[Callable[[Document], None]] = []

    def subscribe(self, changed: Changed, happened: Callable[[Document], None]) -> None:
        """Call back with the key of whatever row changed, and with every Event."""
        self._callbacks.append(changed)
        self._event_callbacks.append(happened)

    # ------------------------------------------------------------------------------------------ what is asked

    def row(self, key: ObjectKey) -> Row | None:
        """A row, or None."""
        return self._table(key.kind).get(key)

    def keys(self) -> Iterator[ObjectKey]:
        """All objects that are known."""
        for table in (*self._tables.values(), self.others):
            yield from table

    def used(self, seed: str) -> int:
        """Shoots on a seed; one that moves counts on both."""
        return len(self._placed.get(seed, ()))

    def shown_seed(self, row: SeedRow) -> Document:
        """A seed's row with how full it is and its last heartbeat (ms since the epoch, or null)."""
        beat = self.heartbeats.get(row.name)
        shown: Document = msgspec.to_builtins(row)
        return shown | {"used": self.used(row.name), "heartbeat": None if beat is None else milliseconds(beat)}

    def summary(self) -> Document:
        """The landscape in numbers."""
        states = {name: count for name, count in self._states.items() if count and ":" not in name}
        limited = [row.capacity for row in self.seeds.values() if row.capacity is not None]
        return {
            "shoots": len(self.shoots),
            "states": states,
            "waiting": self._states[":waiting"],
            "moving": self._states[":moving"],
            "seeds": len(self.seeds),
            "seedsReady": sum(row.ready == "True" for row in self.seeds.values()),
            "seedsOpen": sum(row.ready == "True" and row.visible and not row.deleting for row in self.seeds.values()),
            "places": sum(limited) if len(limited) == len(self.seeds) else None,
            "used": sum(self.used(row.name) for row in self.seeds.values()),
            "sets": len(self.sets),
            "autoscalers": len(self.autoscalers),
            "synced": self.synced,
        }

    # ------------------------------------------------------------------------------------------ what is told

    def put(self, key: ObjectKey, document: Document, at: datetime) -> None:
        """Note an object as it is now."""
        row_of = _ROW_OF.get(key.kind)
        row = row_of(document) if row_of else _other_row(key, document)
        table = self._table(key.kind)
        old = table.get(key)
        if old == row:
            return
        table[key] = row
        if isinstance(row, ShootRow):
            self._count(key, old if isinstance(old, ShootRow) else None, row)
        if isinstance(row, AutoscalerRow):
            self.histories[key] = with_row(self.histories.get(key, ()), row, timestamp(at))
        self.fleet.changed(key, old, row)
        self._tell(key)

    def remove(self, key: ObjectKey) -> None:
        """Note that an object is gone."""
        old = self._table(key.kind).pop(key, None)
        if old is None:
            return
        if isinstance(old, ShootRow):
            self._count(key, old, None)
        self.fleet.changed(key, old, None)
        self.histories.pop(key, None)
        self._tell(key)

    def beat(self, seed: str, at: datetime) -> None:
        """Note a heartbeat."""
        self.heartbeats[seed] = at

    def silence(self, seed: str) -> None:
        """Note that a lease has run out: the time of the last heartbeat stays."""
        if seed in self.heartbeats:
            self._tell(ObjectKey("seed", "", seed))

    def happened(self, event: Document) -> None:
        """Note an Event."""
        shown = shown_event(event)
        identity = f"{shown['kind']}/{shown['namespace']}/{shown['id']}"
        self.events.pop(identity, None)
        self.events[identity] = shown
        while len(self.events) > LARGEST_EVENTS:
            self.events.popitem(last=False)
        if shown["kind"] == "seedautoscaler" and (sample := rescaled(shown["message"], shown["at"])):
            key = ObjectKey("seedautoscaler", shown["namespace"], shown["name"])
            self.histories[key] = with_event(self.histories.get(key, ()), sample)
        for callback in self._event_callbacks:
            callback(shown)

    # ------------------------------------------------------------------------------------------ inside

    def _table(self, kind: str) -> dict[ObjectKey, Any]:
        return self._tables.get(kind, self.others)

    def _tell(self, key: ObjectKey) -> None:
        for callback in self._callbacks:
            callback(key)

    def _count(self, key: ObjectKey, old: ShootRow | None, new: ShootRow | None) -> None:
        self.shoots_changed += 1
        if old is not None:
            self._states.subtract(_counted(old))
        if new is not None:
            self._states.update(_counted(new))
        before, after = _places(old), _places(new)
        for seed in before - after:
            self._placed[seed].discard(key)
            self._tell(ObjectKey("seed", "", seed))
        for seed in after - before:
            self._placed[seed].add(key)
            self._tell(ObjectKey("seed", "", seed))


def milliseconds(at: datetime) -> int:
    """Milliseconds since the epoch, as browsers count."""
    return int(at.timestamp() * 1000)


def shown_event(event: Document) -> Document:
    """An Event in the fields that are shown; `at` is when it happened last."""
    about = section(event, "involvedObject")
    return {
        "id": str(section(event, "metadata").get("name") or ""),
        "kind": str(about.get("kind") or "").lower(),
        "namespace": str(about.get("namespace") or ""),
        "name": str(about.get("name") or ""),
        "type": str(event.get("type") or "Normal"),
        "reason": str(event.get("reason") or ""),
        "message": str(event.get("message") or "")[:LONGEST_MESSAGE],
        "by": str(event.get("reportingComponent") or section(event, "source").get("component") or ""),
        "count": event.get("count") if isinstance(event.get("count"), int) else 1,
        "at": str(event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp") or ""),
    }


def _other_row(key: ObjectKey, document: Document) -> OtherRow:
    metadata = section(document, "metadata")
    return OtherRow(
        name=key.name,
        namespace=key.namespace,
        kind=str(document.get("kind") or key.kind),
        created=str(metadata.get("creationTimestamp") or ""),
        deleting=bool(metadata.get("deletionTimestamp")),
    )


def _counted(row: ShootRow) -> list[str]:
    return [row.state, *([":waiting"] if row.refused else []), *([":moving"] if row.moving else [])]


def _places(row: ShootRow | None) -> set[str]:
    return set() if row is None else {row.seed, row.actual_seed} - {""}
