"""Loops of controllermanager on the store in memory, with a clock that the test turns."""

from collections.abc import Callable, Mapping, Sequence

from gardenbus.common.api.configuration.controller_manager import ControllerManagerConfiguration
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.controller.api_client import ApiserverClient
from gardenbus.common.controller.controller import ReconcileRequest, ReconcileResult, Requeue
from gardenbus.common.errors import Conflict, Transient
from gardenbus.controllermanager.watch.cached_bindings import REFERRING_KINDS, CachedBindings
from gardenbus.controllermanager.watch.loop import Loop, LoopContext
from gardenbus.controllermanager.watch.project_namespaces import ProjectNamespaces
from gardenbus.relay.ports.outbox import EventEntry
from tests.support.clocks import FakeClock
from tests.support.memory.bus import MemoryBus
from tests.support.memory.store import MemoryStore
from tests.support.memory_api import MemoryApi


class StoredObjects:
    """An informer's cache that is never behind."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def objects(self, kind: str) -> Mapping[ObjectKey, StoredObject]:
        return self._store.state.rows.of_kind(kind)


class Garden:
    """A store, and the loops that a test drives by hand."""

    def __init__(
        self,
        configuration: ControllerManagerConfiguration = ControllerManagerConfiguration(),  # noqa: B008  (frozen)
        clock: FakeClock | None = None,
    ) -> None:
        self.clock = clock or FakeClock()
        self.store = MemoryStore(self.clock, reporter="controllermanager")
        self.configuration = configuration
        self.projects = ProjectNamespaces()
        self.bus = MemoryBus(self.clock)
        self.enqueued: list[tuple[str, ObjectKey]] = []
        """What loops put on their queues: name of the loop, object."""

    def context(self, loop: str, enqueue: Callable[[ObjectKey], None] | None = None) -> LoopContext:
        def noted(key: ObjectKey) -> None:
            self.enqueued.append((loop, key))

        return LoopContext(
            store=self.store,
            clock=self.clock,
            objects=StoredObjects(self.store),
            projects=self.projects,
            bindings=self._bindings(),
            api=ApiserverClient(self.bus, Subjects(), user="controllermanager"),
            configuration=self.configuration,
            enqueue=enqueue or noted,
        )

    async def serve_apiserver(self) -> None:
        """Answer the loops' requests by the handlers of a real apiserver."""
        await MemoryApi(clock=self.clock, store=self.store).serve(self.bus)

    def _bindings(self) -> CachedBindings:
        """The bindings as they are now."""
        bindings = CachedBindings()
        for key, stored in self.store.state.rows.of_kind(*REFERRING_KINDS).items():
            bindings.changed(key, None, stored)
        return bindings

    async def add(self, *documents: Document) -> StoredObject:
        """Create objects; returns the last."""
        stored: StoredObject | None = None
        for document in documents:
            created = await self.store.create(document)
            assert isinstance(created, StoredObject)
            self.projects.changed(created.key, None, created)
            stored = created
        assert stored is not None
        return stored

    async def now(self, kind: str, name: str, namespace: str = "") -> Document | None:
        stored = await self.store.get(ObjectKey(kind, namespace, name))
        return None if stored is None else stored.document()

    async def change(self, key: ObjectKey, change: Callable[[Document], None]) -> StoredObject:
        """Change an object as its owner does."""
        stored = await self.store.get(key)
        assert stored is not None
        document = stored.document()
        change(document)
        written = await self.store.update(stored, document)
        assert isinstance(written, StoredObject)
        return written

    async def delete(self, key: ObjectKey) -> bool:
        """Delete an object; whether finalizers keep it."""
        stored = await self.store.get(key)
        assert stored is not None
        return await self.store.delete(stored) is not None

    async def reconcile(self, loop: Loop, key: ObjectKey, attempts: int = 10) -> ReconcileResult | Transient:
        """Reconcile one object as a controller does: a conflict is tried again, a failure is returned."""
        reconcile = loop.build(self.context(loop.name)).reconcile
        for _ in range(attempts):
            try:
                result = await reconcile(request_of(loop, key))
            except Conflict:
                continue
            except Transient as error:
                return error
            if not isinstance(result, Requeue):
                return result
        raise AssertionError(f"{key} keeps changing")

    def events(self, reason: str = "") -> Sequence[str]:
        """Messages of the Events that were recorded, of one reason or all."""
        events = (entry.event for entry in self.store.state.outbox if isinstance(entry, EventEntry))
        return [event.message for event in events if reason in ("", event.reason)]


def request_of(loop: Loop, key: ObjectKey) -> ReconcileRequest:
    """A message of a loop's queue."""
    namespace = key.namespace or "_"
    subject = Subjects().queue(loop.name, key.namespace, key.name)
    return ReconcileRequest(
        subject=subject, tail=f"{namespace}.{key.name}", attempt=0, deliveries=1, reconcile_id="test", queued_ms=0.0
    )
