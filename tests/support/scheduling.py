"""A scheduler's reconcilers on a store in memory, with the queue in the test's hands."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from prometheus_client import CollectorRegistry

from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.garden.scheduling_profiles import SchedulingProfile
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.controller.timers import Timers
from gardenbus.common.ports.bus import Bus, Message, StreamMessage
from gardenbus.scheduler.controllers.shoots import ShootSchedulingReconciler
from gardenbus.scheduler.controllers.unblocking import UnblockingReconciler
from gardenbus.scheduler.metrics import SchedulerMetrics
from gardenbus.scheduling.cache import KINDS, SchedulingCache
from gardenbus.scheduling.user_filters import SeedFilter
from tests.support.clocks import FakeClock
from tests.support.memory.store import MemoryStore

SERVER_TIME = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SCHEDULER = "default-scheduler"


class FetchedWork:
    """A message in hand, as a queue hands it out."""

    def __init__(self, subject: str, *, deliveries: int = 1, headers: Mapping[str, str] | None = None) -> None:
        self.message = StreamMessage(subject, b"", headers or {}, 1, SERVER_TIME)
        self.deliveries = deliveries
        self.is_held_over = False
        self.queued_ms = 1.0
        self.held = 0

    async def ack(self) -> None:
        raise AssertionError("batches are acknowledged together")

    async def release(self) -> None:
        raise AssertionError("work is never released: it comes back by a timer")

    async def in_progress(self) -> None:
        self.held += 1


class Ledger:
    """What was published and acknowledged, in order; it stands in for queue and bus."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, str]] = []
        self.timers: list[Message] = []

    async def fetch(self, limit: int, wait_seconds: float) -> Sequence[FetchedWork]:
        raise AssertionError("the test hands the work out")

    async def ack_many(self, works: Sequence[Any]) -> None:
        self.entries += [("ack", work.message.subject) for work in works]

    async def server_now(self, stream: str) -> datetime:
        return SERVER_TIME

    async def publish_many(self, messages: Sequence[Message]) -> None:
        self.timers += messages
        self.entries += [("timer", message.headers["Nats-Schedule-Target"]) for message in messages]

    @property
    def depth(self) -> int:
        return 0

    @property
    def acknowledged(self) -> list[str]:
        return [subject for what, subject in self.entries if what == "ack"]


class InstantInformer:
    """Sees what the store holds whenever it is told to refresh."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._objects: dict[ObjectKey, StoredObject] = {}
        self.unblock_index = 0
        self.callback: Callable[[ObjectKey, StoredObject | None, StoredObject | None], None] | None = None

    def objects(self, kind: str) -> Mapping[ObjectKey, StoredObject]:
        return {key: stored for key, stored in self._objects.items() if key.kind == kind}

    async def wait_for_unblock_index(self, unblock_index: int, timeout_seconds: float) -> bool:
        await self.refresh()
        return self.unblock_index >= unblock_index

    async def refresh(self) -> None:
        assert self.callback is not None
        found: dict[ObjectKey, StoredObject] = {}
        unblock_index = 0
        for kind in KINDS:
            page = await self._store.list_page(kind, limit=10_000)
            unblock_index = page.unblock_index
            found |= {stored.key: stored for stored in page.objects}
        for key in self._objects.keys() | found.keys():
            old, new = self._objects.get(key), found.get(key)
            if old != new:
                self.callback(key, old, new)
        self._objects, self.unblock_index = found, unblock_index


class SchedulerUnderTest:
    """One scheduler replica."""

    def __init__(
        self,
        store: MemoryStore,
        *,
        strategy: str = "SameRegion",
        filters: Sequence[SeedFilter] = (),
        profiles: Sequence[SchedulingProfile] = (),
    ) -> None:
        self.store = store
        self.clock = FakeClock()
        self.ledger = Ledger()
        self.informer = InstantInformer(store)
        self.cache = SchedulingCache(self.informer, strategy, filters, profiles=profiles)
        self.informer.callback = self.cache.changed
        self.subjects = Subjects()
        self.registry = CollectorRegistry()
        metrics = SchedulerMetrics(self.registry)
        timers = Timers(cast("Bus", self.ledger), self.subjects)
        self.shoots = ShootSchedulingReconciler(
            store=store,
            queue=self.ledger,
            cache=self.cache,
            timers=timers,
            backoff=lambda failures: 2.0**failures,
            clock=self.clock,
            metrics=metrics,
            scheduler_name=SCHEDULER,
        )
        self.activation = UnblockingReconciler(
            store=store,
            queue=self.ledger,
            cache=self.cache,
            timers=timers,
            clock=self.clock,
            metrics=metrics,
            scheduler_name=SCHEDULER,
        )

    async def handle_batch(self, *names: str, **options: Any) -> None:
        """Look at the landscape, then settle these shoots of `garden-dev` as one batch."""
        await self.informer.refresh()
        await self.handle_batch_blindly(*names, **options)

    async def handle_batch_blindly(self, *names: str, **options: Any) -> None:
        """Settle on what was seen last."""
        works = [FetchedWork(self.subject(name), **options) for name in names]
        await self.shoots.handle_batch(works)

    async def bind_early(self, *names: str) -> float:
        """Follow a hint, on what was seen last; returns how many shoots it bound."""
        before = self.hinted("bound")
        await self.shoots.bind_early([FetchedWork(self.subject(name), deliveries=0) for name in names])
        return self.hinted("bound") - before

    def subject(self, name: str) -> str:
        return self.subjects.scheduling(SCHEDULER, ObjectKey("shoot", "garden-dev", name))

    async def activate(self) -> None:
        """Look at the landscape, then settle a message that something was gained."""
        await self.informer.refresh()
        await self.activation.handle_batch([FetchedWork(self.subjects.queue("waking", "", SCHEDULER))])

    async def waiting(self) -> set[str]:
        """Names of the shoots that are unschedulable, and not queued again."""
        return {each.key.name for each in await self.store.unschedulable_shoots(SCHEDULER)}

    def hinted(self, result: str) -> float:
        """Shoots of hints so far."""
        return self.counted("hinted_shoots", result=result)

    def counted(self, metric: str, **labels: str) -> float:
        return self.registry.get_sample_value(f"gardenbus_scheduler_{metric}_total", labels) or 0.0


async def stocked(*documents: Document) -> MemoryStore:
    """A store that holds these objects."""
    store = MemoryStore(FakeClock())
    for document in documents:
        await store.create(document)
    return store


async def shoot_in(store: MemoryStore, name: str) -> StoredObject:
    """A shoot of `garden-dev` as it stands."""
    stored = await store.get(ObjectKey("shoot", "garden-dev", name))
    assert stored is not None
    return stored
