"""Cache of the landscape: small rows for tables and maps, by key.

Callbacks receive the changed keys. Nothing here waits; `cache.updater` feeds it.
"""

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any

import msgspec

from gardenbus.common.api.document import Document
from gardenbus.common.api.fleet.placements import KINDS
from gardenbus.common.api.garden.rows import (
    AutoscalerRow,
    SeedRow,
    SetRow,
    ShootRow,
    TableRow,
    autoscaler_row,
    seed_row,
    set_row,
    shoot_row,
)
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.clock import timestamp
from gardenbus.dashboard.domain.fill_history import FillHistory
from gardenbus.dashboard.domain.rows import OtherRow, event_row, other_row, share_texts, shortened
from gardenbus.dashboard.domain.scaling_history import Sample, rescaled, with_event, with_row
from gardenbus.dashboard.domain.shoot_query import ShootPage, ShootQuery
from gardenbus.dashboard.domain.tree_nodes import is_troubled_shoot
from gardenbus.dashboard.watch.encoded_seeds import EncodedSeeds, last_heartbeat
from gardenbus.dashboard.watch.first_read import FirstRead
from gardenbus.dashboard.watch.placements import CLUSTER, FleetCache
from gardenbus.dashboard.watch.placements import ROW_OF as FLEET_ROW_OF
from gardenbus.dashboard.watch.shoot_lists import ShootLists
from gardenbus.dashboard.watch.waiting import WaitingCache

MAX_EVENTS_KEPT = 2_000
"""Events kept; those of one object are read anew when its page is opened."""

MANAGED_SEED = "managedseed"

RowCallback = Callable[[ObjectKey], None]

_ROW_OF: Mapping[str, Callable[[Document], TableRow]] = {
    "shoot": shoot_row,
    "seed": seed_row,
    "managedseedset": set_row,
    "seedautoscaler": autoscaler_row,
    **FLEET_ROW_OF,
}


class DashboardCache:
    """Rows by key. `synced` once the initial content of the bus has been read."""

    def __init__(self) -> None:
        self.shoots: dict[ObjectKey, ShootRow] = {}
        self.seeds: dict[ObjectKey, SeedRow] = {}
        self.sets: dict[ObjectKey, SetRow] = {}
        self.autoscalers: dict[ObjectKey, AutoscalerRow] = {}
        self.fleet = FleetCache()
        self.waiting = WaitingCache()
        self.fills: dict[str, FillHistory] = {}
        """Histories of the seeds' numbers of shoots, by name."""
        self.others: dict[ObjectKey, OtherRow] = {}
        self.heartbeats: dict[str, datetime] = {}
        self.events: OrderedDict[str, Document] = OrderedDict()
        self.histories: dict[ObjectKey, list[Sample]] = {}
        self._synced = False
        self._first = FirstRead()
        self.encoded_seeds = EncodedSeeds(self.seeds)
        self.lists = ShootLists(self.shoots)
        self._tables: Mapping[str, dict[ObjectKey, Any]] = {
            "shoot": self.shoots,
            "seed": self.seeds,
            "managedseedset": self.sets,
            "seedautoscaler": self.autoscalers,
            **self.fleet.tables,
        }
        self._states: Counter[str] = Counter()
        self._placed: defaultdict[str, set[ObjectKey]] = defaultdict(set)
        self._troubled: defaultdict[str, set[ObjectKey]] = defaultdict(set)
        self._managed: dict[str, ObjectKey] = {}
        self._owned: defaultdict[ObjectKey, set[ObjectKey]] = defaultdict(set)
        self._row_callbacks: list[RowCallback] = []
        self._event_callbacks: list[Callable[[Document], None]] = []

    @property
    def synced(self) -> bool:
        """True once the initial content of the bus has been read."""
        return self._synced

    def mark_synced(self) -> None:
        """Record that the initial content has been read."""
        self._synced = True
        self.put_first(FirstRead())

    def put_first(self, first: FirstRead) -> None:
        """Use what the store's indexes say until the initial content has been read; rows that are there are newer."""
        before, self._first = self._first, first
        for key in before.waiting.keys() | first.waiting.keys():
            if key not in self.shoots:
                self.waiting.put(key, first.waiting.get(key))
                self._notify(key)
        for row in self.seeds.values():
            if before.usage.get(row.name) != first.usage.get(row.name):
                self._notify(ObjectKey("seed", "", row.name))

    def subscribe(self, changed: RowCallback, on_event: Callable[[Document], None]) -> None:
        """Register callbacks for the key of each changed row, and for each Event."""
        self._row_callbacks.append(changed)
        self._event_callbacks.append(on_event)

    def unsubscribe(self, changed: RowCallback, on_event: Callable[[Document], None]) -> None:
        """Remove callbacks."""
        self._row_callbacks.remove(changed)
        self._event_callbacks.remove(on_event)

    @property
    def subscribers(self) -> int:
        """Number of callbacks for rows."""
        return len(self._row_callbacks)

    def all_keys(self) -> Iterable[ObjectKey]:
        """Return the keys of all cached objects."""
        return chain(self.others, *self._tables.values())

    def row(self, key: ObjectKey) -> TableRow | None:
        """Return a row, or None."""
        return self._table(key.kind).get(key)

    def keys_of(self, kind: str) -> set[ObjectKey]:
        """Return the keys of all cached objects of a kind."""
        return {key for key in self._table(kind) if key.kind == kind}

    def shoots_page(self, query: ShootQuery) -> ShootPage:
        """Return a page of the shoots, filtered and sorted."""
        return self.lists.page(query, self._placed.get(query.seed, ()) if query.seed else None)

    def named(self, words: Sequence[str], limit: int) -> list[ObjectKey]:
        """Return the keys of the objects in whose name or namespace (or kind) all words are found.

        Of shoots they are so many of each rank: of that name, that begin so, any.
        """
        found = self.lists.named(words, limit)
        for kind, table in (*self._tables.items(), ("", self.others)):
            if kind != "shoot":
                found += _named(table, [word for word in words if word not in kind])
        return found

    def shoots_on(self, seed: str) -> Collection[ObjectKey]:
        """Return the shoots on a seed; a migrating one is on both."""
        return self._placed.get(seed, ())

    def troubled_on(self, seed: str) -> Collection[ObjectKey]:
        """Return those of them that are not well."""
        return self._troubled.get(seed, ())

    def managed_seed_of(self, seed: str) -> ObjectKey | None:
        """Return the ManagedSeed that makes a seed."""
        return self._managed.get(seed)

    def managed_seeds_of(self, seed_set: ObjectKey) -> list[ObjectKey]:
        """Return the ManagedSeeds of a ManagedSeedSet, by name."""
        return sorted(self._owned.get(seed_set, ()))

    def used(self, seed: str) -> int:
        """Return the number of shoots on a seed; a migrating one counts on both."""
        read = len(self._placed.get(seed, ()))
        return max(read, self._first.usage.get(seed, 0))

    def shown_seed(self, row: SeedRow) -> Document:
        """Return a seed's row with its usage and last heartbeat (ms since the epoch, or null)."""
        beat = last_heartbeat(row, self.heartbeats)
        shown: Document = msgspec.to_builtins(row)
        return shown | {"used": self.used(row.name), "heartbeat": None if beat is None else milliseconds(beat)}

    def shown_seeds(self) -> msgspec.Raw:
        """Return all seeds as `shown_seed` does, as JSON, by provider, region and name."""
        return self.encoded_seeds.encoded(self.used, self.heartbeats)

    def summary(self) -> Document:
        """Return the landscape in numbers."""
        states = {name: count for name, count in self._states.items() if count and ":" not in name}
        first = self._first
        limited = [row.capacity for row in self.seeds.values() if row.capacity is not None]
        return {
            "shoots": max(len(self.shoots), first.shoots),
            "shootsRead": len(self.shoots),
            "states": states,
            "waiting": max(self._states[":waiting"], first.shoots_waiting),
            "moving": self._states[":moving"],
            "seeds": len(self.seeds),
            "seedsReady": sum(row.ready == "True" for row in self.seeds.values()),
            "seedsOpen": sum(map(_is_open, self.seeds.values())),
            "places": sum(limited) if limited or not self.seeds else None,
            "used": sum(self.used(row.name) for row in self.seeds.values()),
            "usedOfPlaces": sum(self.used(row.name) for row in self.seeds.values() if row.capacity is not None),
            "seedsWithoutLimit": len(self.seeds) - len(limited),
            "onUnreadySeeds": sum(self.used(row.name) for row in self.seeds.values() if row.ready != "True"),
            "sets": len(self.sets),
            "autoscalers": len(self.autoscalers),
            "clusters": len(self.fleet.tables[CLUSTER]),
            "placements": sum(len(self.fleet.tables[kind]) for kind in KINDS),
            "synced": self.synced,
        }

    def put(self, key: ObjectKey, document: Document, at: datetime) -> None:
        """Store an object."""
        row_of = _ROW_OF.get(key.kind)
        whole = row_of(document) if row_of else other_row(key, document)
        if isinstance(whole, ShootRow):
            self.waiting.changed(key, whole)
        self.put_row(key, shortened(whole), at=timestamp(at))

    def put_row(self, key: ObjectKey, row: TableRow, *, at: str = "", history: Sequence[Sample] = ()) -> None:
        """Store a row, whose description is short; of an autoscaler its history, or when its change came."""
        table = self._table(key.kind)
        old = table.get(key)
        if old == row:
            return
        if isinstance(row, ShootRow):
            share_texts(row)
            key = ObjectKey("shoot", row.namespace, row.name)  # its texts are the row's
        table[key] = row
        if isinstance(row, ShootRow):
            self._count(key, old if isinstance(old, ShootRow) else None, row)
        if isinstance(row, OtherRow) and key.kind == MANAGED_SEED:
            self._manage(key, old if isinstance(old, OtherRow) else None, row)
        if isinstance(row, AutoscalerRow):
            self.histories[key] = list(history) or with_row(self.histories.get(key, ()), row, at)
        self.fleet.changed(key, old, row)
        self._notify(key)

    def remove(self, key: ObjectKey) -> None:
        """Remove an object."""
        if key.kind == "shoot":
            self.waiting.put(key, None)
        old = self._table(key.kind).pop(key, None)
        if old is None:
            return
        if isinstance(old, ShootRow):
            self._count(key, old, None)
        if key.kind == "seed":
            self.fills.pop(key.name, None)
        if isinstance(old, OtherRow) and key.kind == MANAGED_SEED:
            self._manage(key, old, None)
        self.fleet.changed(key, old, None)
        self.histories.pop(key, None)
        self._notify(key)

    def record_fills(self, at: datetime) -> None:
        """Record the present number of shoots on each seed, as a history's beginning."""
        for row in self.seeds.values():
            self.fills.setdefault(row.name, FillHistory()).record(milliseconds(at), self.used(row.name))

    def record_heartbeat(self, seed: str, at: datetime) -> None:
        """Record a heartbeat."""
        self.heartbeats[seed] = at

    def add_event(self, event: Document) -> None:
        """Add an Event."""
        self.add_event_row(event_row(event))

    def add_event_row(self, shown: Document) -> None:
        """Add an Event as it is shown."""
        identity = f"{shown['kind']}/{shown['namespace']}/{shown['id']}"
        self.events.pop(identity, None)
        self.events[identity] = shown
        while len(self.events) > MAX_EVENTS_KEPT:
            self.events.popitem(last=False)
        if shown["kind"] == "seedautoscaler" and (sample := rescaled(shown["message"], shown["at"])):
            key = ObjectKey("seedautoscaler", shown["namespace"], shown["name"])
            self.histories[key] = with_event(self.histories.get(key, ()), sample)
        for callback in self._event_callbacks:
            callback(shown)

    def _table(self, kind: str) -> dict[ObjectKey, Any]:
        return self._tables.get(kind, self.others)

    def _notify(self, key: ObjectKey) -> None:
        for callback in self._row_callbacks:
            callback(key)

    def _manage(self, key: ObjectKey, old: OtherRow | None, new: OtherRow | None) -> None:
        """Update which ManagedSeed makes which seed, and which set it is of."""
        if old is not None:
            self._owned[_owner_of(key, old)].discard(key)
            self._managed.pop(key.name, None)
        if new is not None:
            self._owned[_owner_of(key, new)].add(key)
            self._managed[key.name] = key

    def _count(self, key: ObjectKey, old: ShootRow | None, new: ShootRow | None) -> None:
        self.lists.changed(old, new)
        if old is not None:
            self._states.subtract(_counted(old))
        if new is not None:
            self._states.update(_counted(new))
        before, after = _seeds_of(old), _seeds_of(new)
        for seed in before:
            self._troubled[seed].discard(key)
        if new is not None and is_troubled_shoot(new):
            for seed in after:
                self._troubled[seed].add(key)
        for seed in before - after:
            self._placed[seed].discard(key)
            self._notify(ObjectKey("seed", "", seed))
        for seed in after - before:
            self._placed[seed].add(key)
            self._notify(ObjectKey("seed", "", seed))


def milliseconds(at: datetime) -> int:
    """Return milliseconds since the epoch, as browsers count."""
    return int(at.timestamp() * 1000)


def _named(keys: Iterable[ObjectKey], words: Sequence[str]) -> Iterable[ObjectKey]:
    for word in words:
        if "/" in word:
            keys = [key for key in keys if word in f"{key.namespace}/{key.name}"]
        else:
            keys = [key for key in keys if word in key.name or word in key.namespace or word in key.kind]
    return keys


def _owner_of(key: ObjectKey, row: OtherRow) -> ObjectKey:
    kind, _, name = row.owner.partition("/")
    return ObjectKey(kind, key.namespace, name)


def _is_open(seed: SeedRow) -> bool:
    return seed.ready == "True" and seed.is_visible and not seed.is_deleting and not seed.lacks_backups


def _counted(row: ShootRow) -> list[str]:
    return [row.state, *([":waiting"] if row.is_unschedulable else []), *([":moving"] if row.is_migrating else [])]


def _seeds_of(row: ShootRow | None) -> set[str]:
    return set() if row is None else {row.seed, row.actual_seed} - {""}
