"""Rolls placements out, step by step.

1. Placement, newest resources and bindings are read from the store; `fleet.rollout` decides.
2. A step that spends budgets counts up the newest resource snapshot, reads and decides again, and writes only while
   that snapshot has the version of the count (see `decide.rolled`): budgets hold however many look at once.
3. What waits, and what has started, is told first; then bindings are handed out, brought up to date, and deleted.

Each write alone keeps the budgets, so whoever dies in between leaves a state like any other.
"""

from collections.abc import Sequence
from typing import NamedTuple

import structlog

from gardenbus.common.errors import Terminal
from gardenbus.common.machinery.controller import After, Again, Done, Outcome, WorkRequest
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.common.ports.store import EventRecord, Guard, Store
from gardenbus.common.resources.document import Document, StoredObject
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.placement_parts import UNSCHEDULED, ResourceBinding
from gardenbus.common.resources.placements import Placement
from gardenbus.fleet.binding_states import check
from gardenbus.fleet.outcome import UnexpectedState
from gardenbus.fleet.rollout import Rollout, lacks_clusters, plan
from gardenbus.placement.decide.policies import is_active
from gardenbus.placement.decide.rolled import handed_out, stepped, with_rollout, with_strategy
from gardenbus.placement.reconcilers import rolling_counters as counters
from gardenbus.placement.reconcilers.family import placement_of
from gardenbus.placement.reconcilers.known import Known
from gardenbus.placement.reconcilers.resource_groups import read_all, rolled_of
from gardenbus.placement.reconcilers.writing import all_of, deleted, unchanged, written

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

REPORTER = "placement-rollout"


class _Look(NamedTuple):
    placement: Placement
    master: StoredObject | None
    bindings: Sequence[StoredObject]
    rollout: Rollout


class RolloutReconciler:
    """Looks at one placement at a time; any number of them, in any number of processes, may look at once."""

    def __init__(self, store: Store, clock: Clock, known: Known) -> None:
        self._store = store
        self._clock = clock
        self._known = known

    async def reconcile(self, request: WorkRequest) -> Outcome:
        """Look at a placement. Raises Conflict, Unavailable, UnexpectedState."""
        stored = await self._store.get(placement_of(request))
        if stored is None:
            return Done("it is gone")
        if stored.is_deleting:
            return Done("it is leaving")
        try:
            return await self._roll(stored)
        except (UnexpectedState, Terminal) as error:
            await self._complain(stored, error.message)
            raise UnexpectedState(error.message) from error

    async def _roll(self, stored: StoredObject) -> Outcome:
        look = await self._look(stored)
        guards: list[Guard] = []
        if look.rollout.spends and look.master is not None:
            claim = await written(self._store, look.master, stepped(look.master.document()))
            fresh = await self._store.get(stored.key)
            if fresh is None or fresh.is_deleting or fresh.uid != stored.uid:
                return Again("it is leaving")
            look = await self._look(fresh)
            if look.master is not None and look.master.key != claim.key:
                return Again("there are newer resources")
            guards = [unchanged(claim)]
        if look.rollout.strategies:
            await self._hand_strategy_on(look)
            return Again("the way of applying was handed on")
        await self._tell(look)
        await self._carry_out(look, guards)
        self._log(stored, look.rollout)
        if look.rollout.recheck_after is not None:
            return After(look.rollout.recheck_after, look.rollout.reason)
        return Done(look.rollout.reason)

    async def _look(self, stored: StoredObject) -> _Look:
        placement = Placement.from_document(stored.encoded())
        master, bindings = await rolled_of(self._store, stored)
        if master is not None and not is_active(master):
            master = None  # its successor is in the making
        views = [ResourceBinding.from_document(each.encoded()) for each in bindings]
        rollout = plan(
            placement,
            master.key.name if master else "",
            views,
            self._clock.now().timestamp(),
            gone=await self._gone(views),
            lacks_clusters=lacks_clusters(stored.document()),
        )
        return _Look(placement, master, bindings, rollout)

    async def _gone(self, bindings: Sequence[ResourceBinding]) -> frozenset[str]:
        """The clusters of given-up bindings that are no longer there: not known here, and not in the store."""
        asked = {each.spec.target_cluster for each in bindings if each.spec.state == UNSCHEDULED}
        unknown = sorted(asked - self._known.clusters().keys())
        found = await read_all(self._store, [ObjectKey("membercluster", "", name) for name in unknown])
        return frozenset(name for name, cluster in zip(unknown, found, strict=True) if cluster is None)

    async def _hand_strategy_on(self, look: _Look) -> None:
        strategy = look.placement.spec.strategy.apply_strategy
        names = set(look.rollout.strategies)
        await all_of(
            self._write(each, with_strategy(each.document(), strategy), ())
            for each in look.bindings
            if each.key.name in names
        )

    async def _tell(self, look: _Look) -> None:
        """Say of bindings that wait, and of those that do not any more, which of the two it is."""
        now, rollout = timestamp(self._clock.now()), look.rollout
        started = dict.fromkeys(rollout.waiting, False) | dict.fromkeys(rollout.started, True)
        told = [
            (each, with_rollout(each.document(), now, started=started[each.key.name]))
            for each in look.bindings
            if each.key.name in started
        ]
        await all_of(self._write(each, document, ()) for each, document in told if document != each.document())

    async def _carry_out(self, look: _Look, guards: Sequence[Guard]) -> None:
        if look.master is None or not guards:
            return
        now, latest = timestamp(self._clock.now()), look.master.key.name
        by_name = {each.key.name: each for each in look.bindings}
        rollout = look.rollout
        handed = [by_name[name] for name in (*rollout.update, *rollout.bind)]
        await all_of(self._write(each, handed_out(each.document(), latest, now), guards) for each in handed)
        counters.ROLLED.labels("updated").inc(len(rollout.update))
        counters.ROLLED.labels("bound").inc(len(rollout.bind))
        await all_of(self._delete(by_name[name], guards) for name in rollout.delete)
        counters.ROLLED.labels("deleted").inc(len(rollout.delete))

    async def _write(self, base: StoredObject, document: Document, guards: Sequence[Guard]) -> None:
        old, new = ResourceBinding.from_document(base.encoded()), ResourceBinding.from_document(document)
        check(old, new, "rollout")
        await written(self._store, base, document, guards)

    async def _delete(self, base: StoredObject, guards: Sequence[Guard]) -> None:
        document = base.document()
        document["metadata"]["deletionTimestamp"] = timestamp(self._clock.now())
        old, new = ResourceBinding.from_document(base.encoded()), ResourceBinding.from_document(document)
        check(old, new, "rollout")
        await deleted(self._store, base, guards)

    def _log(self, stored: StoredObject, rollout: Rollout) -> None:
        if rollout.spends:
            log.info(
                "placement.rolled",
                placement=str(stored.key),
                bound=len(rollout.bind),
                updated=len(rollout.update),
                deleted=len(rollout.delete),
                waiting=len(rollout.waiting),
            )

    async def _complain(self, stored: StoredObject, message: str) -> None:
        await self._store.record_event(
            EventRecord(
                about=stored.key,
                uid=stored.uid,
                type="Warning",
                reason="RolloutFailed",
                message=message,
                reporter=REPORTER,
                action="Rollout",
            )
        )
