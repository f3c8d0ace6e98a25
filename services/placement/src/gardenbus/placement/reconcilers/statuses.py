"""Looks at what became of placements, and writes it into their statuses: conditions, and how it is on each cluster."""

import structlog

from gardenbus.common.errors import InvalidResource
from gardenbus.common.machinery.controller import After, Done, Outcome, WorkRequest
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.common.ports.store import Store
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.placements import Placement
from gardenbus.fleet.refusal import with_refusal_kept
from gardenbus.placement.decide.policies import active_one
from gardenbus.placement.decide.statuses import status_of
from gardenbus.placement.reconcilers import counters
from gardenbus.placement.reconcilers.family import family_of, placement_of
from gardenbus.placement.reconcilers.writing import written

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

LARGE = 100
"""Bindings from which on a status is not renewed with each change of one of them."""

BINDINGS_PER_SECOND = 500.0
"""How many bindings a status that is large is made of, on average."""


class StatusReconciler:
    """Looks at one placement at a time; any number of them, in any number of processes, may look at once."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._rests_until: dict[ObjectKey, float] = {}

    async def reconcile(self, request: WorkRequest) -> Outcome:
        """Look at a placement. Raises Conflict, Unavailable."""
        key, now = placement_of(request), self._clock.monotonic()
        if (rest := self._rests_until.get(key, 0.0) - now) > 0:
            return After(rest, "it was looked at a moment ago")
        self._rests_until.pop(key, None)
        stored = await self._store.get(key)
        if stored is None or stored.is_deleting:
            return Done("it is leaving")
        family = await family_of(self._store, stored, "policy_snapshot", "binding")
        snapshot = active_one(family.policy_snapshots)
        document = stored.document()
        bindings = [each.document() for each in family.bindings]
        if len(bindings) > LARGE:
            self._rests_until[key] = now + max(1.0, len(bindings) / BINDINGS_PER_SECOND)
        try:
            placement = Placement.from_document(document)
        except InvalidResource:
            return Done("it cannot be read, which its own look tells")
        now_told = timestamp(self._clock.now())
        status = status_of(placement, document, snapshot.document() if snapshot else None, bindings, now_told)
        status = with_refusal_kept(status, document)
        if status != document.get("status"):
            await written(self._store, stored, {**document, "status": status})
            counters.STATUSES.inc()
        return Done()
