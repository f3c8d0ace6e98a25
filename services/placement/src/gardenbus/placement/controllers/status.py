"""Renews the statuses of placements: conditions, and the state on each cluster."""

from gardenbus.common.api.fleet.placements import Placement
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done, ReconcileRequest, ReconcileResult, RequeueAfter
from gardenbus.common.controller.writes import update
from gardenbus.common.errors import InvalidResource
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.common.ports.store import Store
from gardenbus.fleet.rejection import with_rejection_kept
from gardenbus.placement import metrics
from gardenbus.placement.domain.placement_status import status_of
from gardenbus.placement.domain.policy_snapshots import active_one
from gardenbus.placement.domain.unmatched_selectors import with_not_found_kept
from gardenbus.placement.store.owned_objects import owned_objects, placement_of

LARGE = 100
"""Number of bindings above which a status is renewed at a limited rate."""

BINDINGS_PER_SECOND = 500.0
"""That rate: bindings per second that go into renewed statuses, on average."""


class StatusReconciler:
    """Reconciles the statuses of placements; safe to run concurrently, in any number of processes."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._rests_until: dict[ObjectKey, float] = {}

    async def reconcile(self, request: ReconcileRequest) -> ReconcileResult:
        """Reconcile a placement. Raises Conflict, Unavailable."""
        key, now = placement_of(request), self._clock.monotonic()
        if (rest := self._rests_until.get(key, 0.0) - now) > 0:
            return RequeueAfter(rest, "it was reconciled a moment ago")
        self._rests_until.pop(key, None)
        stored = await self._store.get(key)
        if stored is None or stored.is_deleting:
            return Done("it is being deleted")
        owned = await owned_objects(self._store, stored, "policy_snapshot", "binding")
        snapshot = active_one(owned.policy_snapshots)
        document = stored.document()
        bindings = [each.document() for each in owned.bindings]
        if len(bindings) > LARGE:
            self._rests_until[key] = now + max(1.0, len(bindings) / BINDINGS_PER_SECOND)
        try:
            placement = Placement.from_document(document)
        except InvalidResource:
            return Done("it is invalid, which the snapshot controller reports")
        renewed_at = timestamp(self._clock.now())
        status = status_of(placement, document, snapshot.document() if snapshot else None, bindings, renewed_at)
        status = with_not_found_kept(with_rejection_kept(status, document), document, placement)
        if status != document.get("status"):
            await update(self._store, stored, {**document, "status": status})
            metrics.STATUSES.inc()
        return Done()
