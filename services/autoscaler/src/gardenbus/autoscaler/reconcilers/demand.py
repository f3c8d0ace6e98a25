"""Counts who waits for a seed that a set could bring."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
import structlog

from gardenbus.autoscaler.decide.configuration import SchedulerChoice
from gardenbus.autoscaler.decide.demand import Prospect, Waiting
from gardenbus.autoscaler.decide.reading import owner_sets, shoot_behind
from gardenbus.common.errors import InvalidResource, Unavailable
from gardenbus.common.ports.store import Store, WaitingClass
from gardenbus.common.resources.document import Document, StoredObject
from gardenbus.common.resources.keys import GARDEN_NAMESPACE
from gardenbus.common.resources.shoots import Shoot
from gardenbus.scheduling.current import CurrentLandscape
from gardenbus.scheduling.landscape import SeedCandidate, Snapshot
from gardenbus.scheduling.request import request_from_descriptor, request_of, waiting_class

_log = structlog.stdlib.get_logger()

CATCH_UP_SECONDS = 2.0
"""How long to wait for this process to have heard of all seeds that the store says have changed."""

UNDECIDED = ""
"""In place of a class: no scheduler has refused it yet."""

AT_ONCE = 200
"""Classes between two pauses for other work."""


class Demand:
    """Knows the landscape by each scheduler's strategy, and asks the store who waits."""

    def __init__(self, store: Store, landscapes: Mapping[SchedulerChoice, CurrentLandscape]) -> None:
        self._store = store
        self._landscapes = dict(landscapes)

    async def waiting(
        self, new_seed: Document, *, garden_shoots: Sequence[StoredObject], managed_seeds: Sequence[StoredObject]
    ) -> Waiting:
        """How many waiting shoots need a new seed, those left out that are to become seeds themselves.

        Usage is read before those who wait, and these before all who need a seed: whoever is placed meanwhile counts as
        coming. Raises Unavailable when the landscape is not known well enough yet.
        """
        candidate = SeedCandidate.of(new_seed)
        behind = {shoot_behind(each.document()) for each in managed_seeds}
        pending = coming = 0
        for choice, current in self._landscapes.items():
            usage = await self._store.usage()
            if not await current.wait_for_objects(usage.gains.objects, CATCH_UP_SECONDS):
                raise Unavailable("the news of the landscape is late")
            standing = Snapshot(current.snapshot().landscape, dict(usage.seeds))
            waiting = await self._store.waiting(choice.scheduler_name)
            for_seeds = self._for_seeds(garden_shoots, behind, choice, current)
            undecided = await self._store.pending(choice.scheduler_name) - sum(each.waiting for each in waiting)
            undecided -= for_seeds.pop(UNDECIDED, 0)
            sorted_out = await _sorted_out(waiting, Prospect(standing, candidate), for_seeds)
            pending += sorted_out.pending
            coming += sorted_out.coming + max(undecided, 0)
        return Waiting(pending, coming)

    @staticmethod
    def _for_seeds(
        shoots: Sequence[StoredObject], behind: set[str], choice: SchedulerChoice, current: CurrentLandscape
    ) -> Counter[str]:
        """The shoots without a seed that are to become seeds themselves: by class, or UNDECIDED."""
        classes: Counter[str] = Counter()
        for stored in shoots:
            if stored.parts.seed_name or stored.is_deleting or stored.key.namespace != GARDEN_NAMESPACE:
                continue
            document = stored.document()
            if stored.key.name not in behind and not owner_sets(document):
                continue
            try:
                shoot = Shoot.from_document(document)
            except InvalidResource:
                continue
            if shoot.scheduler_name == choice.scheduler_name:
                request = request_of(shoot, document, current.filters) if stored.pending else None
                classes[UNDECIDED if request is None else waiting_class(request)] += 1
        return classes


async def _sorted_out(waiting: Sequence[WaitingClass], prospect: Prospect, for_seeds: Counter[str]) -> Waiting:
    pending = coming = 0
    for number, each in enumerate(waiting, start=1):
        if number % AT_ONCE == 0:
            await asyncio.sleep(0)
        try:
            request = request_from_descriptor(each.descriptor)
            found = prospect.sort(request, each.waiting - for_seeds[each.waiting_class])
        except msgspec.ValidationError:
            continue  # written by another version; its scheduler decides it anew
        except Exception:  # noqa: BLE001  a user's own filter may fail in any way
            _log.exception("decision.failed", waiting_class=each.waiting_class)
        else:
            pending, coming = pending + found.pending, coming + found.coming
    return Waiting(pending, coming)
