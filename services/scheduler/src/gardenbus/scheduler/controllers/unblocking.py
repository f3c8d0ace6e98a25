"""Unblocks unschedulable shoots after cluster events: as many are queued again as may find room."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import msgspec
import structlog

from gardenbus.common.api.garden.scheduling_order import activation_order
from gardenbus.common.controller.timers import Timers
from gardenbus.common.ports.bus import QueueMessage, WorkQueue
from gardenbus.common.ports.clock import Clock, parse_timestamp
from gardenbus.common.ports.store import Store, UnschedulableClass
from gardenbus.scheduler.metrics import SchedulerMetrics
from gardenbus.scheduler.watch.usage_refresh import record_usage
from gardenbus.scheduling.cache import SchedulingCache
from gardenbus.scheduling.equivalence_classes import SchedulingRequest, request_from_descriptor
from gardenbus.scheduling.free_capacity import FreeCapacity
from gardenbus.scheduling.group_index import GroupIndex, read_groups

_log = structlog.stdlib.get_logger()

_PRIORITY = b'"priority":'
"""In the descriptors of classes that state one: only with these there is an order."""

_RULES = b'"rules":'
"""In the descriptors of classes with rules between shoots."""

CATCH_UP_SECONDS = 1.0
"""Wait for the cluster event itself to reach the cache; if it takes longer, try again after `RETRY_SECONDS`."""

CLASSES_AT_ONCE = 200
"""Classes handled between two pauses for other tasks."""

QUICK_SECONDS = 0.05
REST_FACTOR = 9
MAX_REST_SECONDS = 5.0
"""A pass that takes longer than `QUICK_SECONDS` is followed by a rest `REST_FACTOR` times as long, at most
`MAX_REST_SECONDS`: with very many classes unblocking takes a tenth of the time, and events that come meanwhile are
handled together."""

RETRY_SECONDS = 1.0
"""Pause before the next pass when more shoots may fit: those unblocked first must have their seeds by then."""


class _Class(NamedTuple):
    """A class of waiting shoots, and the request that they share; None where another version described it."""

    waiting: UnschedulableClass
    request: SchedulingRequest | None


def _decoded(waiting: UnschedulableClass) -> _Class:
    try:
        return _Class(waiting, request_from_descriptor(waiting.descriptor))
    except msgspec.ValidationError:
        return _Class(waiting, None)


def _place_in_order(each: _Class, now: datetime) -> tuple[int, int, str]:
    """The sort key of a class of waiting shoots."""
    waiting, request = each
    priority = request.priority if request is not None else 0
    since = parse_timestamp(waiting.since)
    waited = (now - since).total_seconds() if since is not None else 0.0
    return activation_order(priority, waited, waiting.equivalence_class)


@dataclass(kw_only=True, eq=False)
class UnblockingReconciler:
    """Handles the messages that announce a cluster event."""

    store: Store
    queue: WorkQueue
    cache: SchedulingCache
    timers: Timers
    clock: Clock
    metrics: SchedulerMetrics
    scheduler_name: str

    async def handle_batch(self, messages: Sequence[QueueMessage]) -> None:
        """Unblock by the current state; all messages mean the same. Raises Transient when a server is away."""
        began = self.clock.monotonic()
        usage = await self.store.usage(self.cache.usage_version)
        await record_usage(self.store, self.cache, usage)
        is_current = await self.cache.wait_for_objects(usage.unblock_indexes.objects, CATCH_UP_SECONDS)
        has_more = await self.activate()
        if has_more or not is_current:
            for subject in {queued.message.subject for queued in messages}:
                await self.timers.enqueue_after(subject, RETRY_SECONDS)
        await self.queue.ack_many(messages)
        duration = self.clock.monotonic() - began
        if duration > QUICK_SECONDS:
            await self.clock.sleep(min(duration * REST_FACTOR, MAX_REST_SECONDS))

    async def activate(self) -> bool:
        """Queue again what may fit; returns whether some were left that may fit too."""
        has_more = False
        classes = [waiting for waiting in await self.store.unschedulable_classes(self.scheduler_name) if waiting.unseen]
        if any(_PRIORITY in waiting.descriptor for waiting in classes):
            return await self._unblock_in_order()
        for start in range(0, len(classes), CLASSES_AT_ONCE):
            has_more = await self._unblock(classes[start : start + CLASSES_AT_ONCE]) or has_more
            await self.clock.sleep(0)  # let other tasks run
        return has_more

    async def _unblock_in_order(self) -> bool:
        """Queue again by band, priority and name, with the places of those before taken off, class by class."""
        classes = await self.store.unschedulable_classes(self.scheduler_name, with_ages=True)
        now, has_more = self.clock.now(), False
        ordered = sorted(
            (_decoded(each) for each in classes if each.unseen), key=lambda each: _place_in_order(each, now)
        )
        groups = [
            await self._groups_of(ordered[start : start + CLASSES_AT_ONCE])
            for start in range(0, len(ordered), CLASSES_AT_ONCE)
        ]
        free_capacity = FreeCapacity(self.cache.snapshot(self.scheduler_name))
        for position, each in enumerate(ordered):
            places = self._places(each, free_capacity, groups[position // CLASSES_AT_ONCE], is_promised=True)
            if places:
                has_more = await self._activate(each.waiting, places) or has_more
            await self.clock.sleep(0)  # let other tasks run
        return has_more

    async def _unblock(self, classes: Sequence[UnschedulableClass]) -> bool:
        decoded = [_decoded(each) for each in classes]
        groups = await self._groups_of(decoded)
        free_capacity = FreeCapacity(self.cache.snapshot(self.scheduler_name))
        wanted = [(each.waiting, places) for each in decoded if (places := self._places(each, free_capacity, groups))]
        has_more = False
        for waiting, places in wanted:
            has_more = await self._activate(waiting, places) or has_more
        return has_more

    async def _groups_of(self, classes: Sequence[_Class]) -> GroupIndex:
        """Read the groups that some classes have rules about: who waits for a member is left alone until it comes."""
        requests = (request for waiting, request in classes if _RULES in waiting.descriptor)
        return await read_groups(
            self.store, [(each.constraints.namespace, each.rules) for each in requests if each is not None]
        )

    async def _activate(self, waiting: UnschedulableClass, places: int) -> bool:
        """Queue shoots of a class again; returns whether some were left."""
        unblocked = await self.store.activate(self.scheduler_name, waiting.equivalence_class, places)
        self.metrics.unblocked.inc(unblocked)
        _log.info(
            "shoots.unblocked",
            equivalence_class=waiting.equivalence_class,
            unblocked=unblocked,
            unseen=waiting.unseen,
            places=places,
        )
        return unblocked < waiting.unseen

    def _places(
        self,
        each: _Class,
        free_capacity: FreeCapacity,
        groups: GroupIndex,
        *,
        is_promised: bool = False,
    ) -> int:
        """Shoots of a class to unblock at most: one for each free place, all if that has no limit or is unknown."""
        waiting, request = each
        if request is None:
            return waiting.unseen
        try:
            if is_promised:
                places = free_capacity.promise(request, waiting.unseen, groups)
            else:
                places = free_capacity.shoots(request, groups)
        except Exception:  # noqa: BLE001  a user's filter
            _log.exception("decision.failed", equivalence_class=waiting.equivalence_class)
            self.metrics.exceptions.inc()
            return waiting.unseen
        return waiting.unseen if places is None else min(places, waiting.unseen)
