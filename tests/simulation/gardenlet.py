"""Stranger's gardenlet of one seed: runs what is bound to it, over plain messages; its records survive a crash.

It has the real cache of bindings, and the rules of a gardenlet: a control plane is torn down for its tombstone, its
deletion or another object of the same name, and never for the mere absence of its binding or for the tombstone of
another one, which a stream that went back may bring again: it asks about it.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.errors import GardenbusError, Unavailable
from gardenbus.common.ports.bus import FollowRestarted, Message, ReplayDone
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_record import ShootName
from gardenbus.gardenlet.watch.binding_cache import BindingCache, Tombstone
from tests.simulation.actor import Actor
from tests.simulation.connections import SimulatedBus

REPEAT_SECONDS = 20.0
PROGRESS = "Progress"
"""Header of a report with the number that it puts into the status."""


@dataclass
class Record:
    """A control plane that runs here. `progress` counts its reports."""

    uid: str
    manifest: Document
    progress: int = 0


@dataclass
class Disk:
    """What a gardenlet keeps over a crash, and whom it tells what it does."""

    seed: str
    began: Callable[[str, str], None]
    ended: Callable[[str, str], None]
    records: dict[ShootName, Record] = field(default_factory=dict[ShootName, Record])


class Gardenlet:
    """One life of it."""

    def __init__(self, bus: SimulatedBus, subjects: Subjects, disk: Disk) -> None:
        self._bus, self._subjects, self._disk = bus, subjects, disk
        self._cache = BindingCache(subjects, disk.seed)
        self._changed = asyncio.Event()
        self._pending: dict[ShootName, None] = {}

    async def run(self, actor: Actor) -> None:
        """Follow, and reconcile what changes."""
        actor.spawn(self._follow())
        actor.spawn(self._repeat())
        while True:
            await self._changed.wait()
            self._changed.clear()
            while self._pending:
                name = next(iter(self._pending))
                del self._pending[name]
                try:
                    await self._reconcile(name)
                except Unavailable:
                    self._enqueue(name)
                    await asyncio.sleep(1.0)

    async def report_again(self) -> None:
        """Report progress on everything that runs."""
        for name, record in list(self._disk.records.items()):
            try:
                await self._report(name, record, {})
            except Unavailable:
                self._enqueue(name)

    async def _follow(self) -> None:
        filters = [self._subjects.bindings_of(self._disk.seed), self._subjects.views_of(self._disk.seed)]
        while True:
            self._cache.replay_began()
            try:
                async with self._bus.follow("BINDINGS", filters, last_per_subject=True) as follower:
                    async for event in follower:
                        if isinstance(event, ReplayDone):
                            self._cache.replay_ended()
                            self._enqueue_all()
                        elif isinstance(event, FollowRestarted):
                            self._cache.replay_began()
                        elif isinstance(name := self._cache.update(event), ObjectKey):
                            await self._send_inventory(name)
                        elif name:
                            self._enqueue(name)
            except GardenbusError:
                await asyncio.sleep(1.0)

    async def _repeat(self) -> None:
        while True:
            await asyncio.sleep(REPEAT_SECONDS)
            self._enqueue_all()

    def _enqueue_all(self) -> None:
        for name in [*self._cache.shoots, *self._disk.records]:
            self._enqueue(name)

    def _enqueue(self, name: ShootName) -> None:
        self._pending[name] = None
        self._changed.set()

    async def _reconcile(self, name: ShootName) -> None:
        observed, record = self._cache.shoots.get(name), self._disk.records.get(name)
        if observed is None:
            if record is not None and self._cache.is_complete:
                await self._query(name, record.uid, record.manifest)
        elif isinstance(observed, Tombstone):
            if record is not None and not observed.is_about(record.uid):
                await self._query(name, record.uid, record.manifest)
                return
            if record is not None:
                self._end(name, record)
            await self._send(name, {}, {Header.QUERY: "gone", Header.SEQUENCE: str(observed.sequence)})
            self._cache.forget(name, observed)
        elif record is None and self._cache.is_unconfirmed(name):
            if self._cache.is_complete:
                await self._query(name, observed.uid, {})
        elif record is not None and record.uid != observed.uid and self._cache.is_unconfirmed(name):
            if self._cache.is_complete:
                await self._query(name, record.uid, record.manifest)
        else:
            await self._run_observed(name, observed, record)

    async def _run_observed(self, name: ShootName, observed: ObservedShoot, record: Record | None) -> None:
        if record is not None and record.uid != observed.uid:
            self._end(name, record)
            record = None
        if observed.is_deleting:
            if record is not None:
                self._end(name, record)
            status = {"lastOperation": _operation("Delete", 100)}
            await self._send(name, {"status": status}, {Header.UID: observed.uid})
            return
        if record is None:
            record = self._disk.records[name] = Record(observed.uid, _manifest(observed))
            self._disk.began(self._disk.seed, observed.uid)
        if observed.status_seed != self._disk.seed:
            await self._report(name, record, {"seedName": self._disk.seed})

    def _end(self, name: ShootName, record: Record) -> None:
        del self._disk.records[name]
        self._disk.ended(self._disk.seed, record.uid)

    async def _send_inventory(self, about: ObjectKey) -> None:
        """Answer a recovery of the store that the Seed is announced with."""
        if about.kind != "seed" or not self._cache.recovery_id:
            return
        headers = {Header.QUERY: "inventory", Header.RECOVERY: self._cache.recovery_id}
        items = [
            {"kind": "shoot", "namespace": namespace, "name": name, "uid": record.uid}
            for (namespace, name), record in self._disk.records.items()
        ]
        await self._bus.publish(
            Message(self._subjects.report(self._disk.seed, about), encode({"items": items}), headers)
        )

    async def _report(self, name: ShootName, record: Record, status: Document) -> None:
        record.progress += 1
        status = {**status, "lastOperation": _operation("Create", record.progress)}
        await self._send(name, {"status": status}, {Header.UID: record.uid, PROGRESS: str(record.progress)})

    async def _query(self, name: ShootName, uid: str, held: Document) -> None:
        await self._send(name, held, {Header.QUERY: "exists", Header.UID: uid})

    async def _send(self, name: ShootName, body: Document, headers: dict[str, str]) -> None:
        subject = self._subjects.report(self._disk.seed, ObjectKey("shoot", *name))
        await self._bus.publish(Message(subject, encode(body), headers))


def _operation(kind: str, progress: int) -> Document:
    return {
        "type": kind,
        "state": "Succeeded",
        "progress": progress,
        "description": "Done.",
        "lastUpdateTime": "2026-01-02T03:04:05Z",
    }


def _manifest(observed: ObservedShoot) -> Document:
    return {"kind": "Shoot", "metadata": {"namespace": observed.namespace, "name": observed.name, "uid": observed.uid}}
