"""Counts the pending shoots that a set's next seed would help."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import structlog

from gardenbus.autoscaler.domain.manifests import cluster_shoot_of, owner_sets
from gardenbus.autoscaler.domain.scale_up_simulation import PendingShoots, ScaleUpSimulation
from gardenbus.common.api.configuration.seed_autoscaler import SchedulerReference
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.garden.shoots import Shoot
from gardenbus.common.api.keys import GARDEN_NAMESPACE
from gardenbus.common.errors import InvalidResource, Unavailable
from gardenbus.common.ports.store import Store, UnschedulableClass
from gardenbus.scheduling.cache import SchedulingCache
from gardenbus.scheduling.equivalence_classes import (
    SchedulingRequest,
    equivalence_class,
    request_from_descriptor,
    request_of,
)
from gardenbus.scheduling.group_index import read_groups
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.snapshot import Landscape, Snapshot

_log = structlog.stdlib.get_logger()

CATCH_UP_SECONDS = 2.0
"""Timeout for this process' cache to catch up with the store's changes of seeds."""

UNATTEMPTED = ""
"""In place of an equivalence class: no scheduler has attempted it yet."""

BATCH_SIZE = 200
"""Classes between two pauses for other tasks."""


class PendingShootCounter:
    """Simulates each scheduler's strategy on the unscheduled shoots of the store."""

    def __init__(self, store: Store, landscapes: Mapping[SchedulerReference, SchedulingCache]) -> None:
        self._store = store
        self._landscapes = dict(landscapes)

    async def count(
        self, new_seed: Document, *, garden_shoots: Sequence[StoredObject], managed_seeds: Sequence[StoredObject]
    ) -> PendingShoots:
        """Count the shoots that need a new seed, except those that are to become seeds themselves.

        Usage is read before the unscheduled shoots, and these before all that need a seed: a shoot that is placed
        meanwhile counts as being scheduled. Raises Unavailable while the landscape's cache is behind.
        """
        candidate = SeedCandidate.of(new_seed)
        cluster_shoots = {cluster_shoot_of(each.document()) for each in managed_seeds}
        pending = being_scheduled = 0
        for scheduler, current in self._landscapes.items():
            events = await current.refresh_usage(self._store)
            usage = current.usage
            if not await current.wait_for_objects(events.objects, CATCH_UP_SECONDS):
                raise Unavailable("events of the landscape arrive late")
            waiting = await self._store.unschedulable_classes(scheduler.scheduler_name)
            requests = _requests_of(waiting)
            rules = ((each.constraints.namespace, each.rules) for each in requests.values())
            groups = await read_groups(self._store, rules)
            landscape = current.snapshot(scheduler.scheduler_name).landscape
            for_managed_seeds = self._for_managed_seeds(garden_shoots, cluster_shoots, scheduler, landscape)
            unattempted = await self._store.pending(scheduler.scheduler_name) - sum(each.count for each in waiting)
            unattempted -= for_managed_seeds.pop(UNATTEMPTED, 0)
            simulation = ScaleUpSimulation(Snapshot(landscape, usage, groups), candidate)
            classified = await _classify_all(waiting, requests, simulation, for_managed_seeds)
            pending += classified.pending
            being_scheduled += classified.being_scheduled + max(unattempted, 0)
        return PendingShoots(pending, being_scheduled)

    @staticmethod
    def _for_managed_seeds(
        shoots: Sequence[StoredObject],
        cluster_shoots: set[str],
        scheduler: SchedulerReference,
        landscape: Landscape,
    ) -> Counter[str]:
        """The shoots without a seed that are to become seeds themselves: by class, or UNATTEMPTED."""
        classes: Counter[str] = Counter()
        for stored in shoots:
            if stored.parts.seed_name or stored.is_deleting or stored.key.namespace != GARDEN_NAMESPACE:
                continue
            document = stored.document()
            if stored.key.name not in cluster_shoots and not owner_sets(document):
                continue
            try:
                shoot = Shoot.from_document(document)
            except InvalidResource:
                continue
            if shoot.scheduler_name == scheduler.scheduler_name:
                classes[_class_of(shoot, document, landscape) if stored.pending else UNATTEMPTED] += 1
        return classes


def _class_of(shoot: Shoot, document: Document, landscape: Landscape) -> str:
    request = request_of(shoot, document, landscape.filters, reads_purpose=landscape.reads_purpose)
    return equivalence_class(request)


def _requests_of(waiting: Iterable[UnschedulableClass]) -> Mapping[str, SchedulingRequest]:
    """Requests by class, without those that another version has written: its scheduler decides them anew."""
    found: dict[str, SchedulingRequest] = {}
    for each in waiting:
        with contextlib.suppress(msgspec.ValidationError):
            found[each.equivalence_class] = request_from_descriptor(each.descriptor)
    return found


async def _classify_all(
    waiting: Sequence[UnschedulableClass],
    requests: Mapping[str, SchedulingRequest],
    simulation: ScaleUpSimulation,
    for_managed_seeds: Counter[str],
) -> PendingShoots:
    pending = being_scheduled = 0
    for number, each in enumerate(waiting, start=1):
        if number % BATCH_SIZE == 0:
            await asyncio.sleep(0)
        request = requests.get(each.equivalence_class)
        if request is None:
            continue
        try:
            found = simulation.classify(request, each.count - for_managed_seeds[each.equivalence_class])
        except Exception:  # noqa: BLE001  a user's own filter may fail in any way
            _log.exception("decision.failed", equivalence_class=each.equivalence_class)
        else:
            pending, being_scheduled = pending + found.pending, being_scheduled + found.being_scheduled
    return PendingShoots(pending, being_scheduled)
