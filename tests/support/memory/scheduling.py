"""The store in memory as a scheduler uses it: shoots are bound, marked unschedulable and activated."""

from collections.abc import Sequence

import msgspec

from gardenbus.common.adapters.store_responses import pending_operation, scheduled_event
from gardenbus.common.api.document import split
from gardenbus.common.api.document_parts import FINALIZER
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports import tracing
from gardenbus.common.ports.store import (
    BindOutcome,
    BindRecord,
    BindResults,
    EventRecord,
    SeedBinding,
    UnschedulableResult,
    UnschedulableResults,
    UnschedulableShoot,
)
from gardenbus.relay.ports.outbox import EventEntry
from tests.support.memory.reads import MemoryReads
from tests.support.memory.state import MemoryState, ObjectRow, UnschedulableIndex, is_migrating, member_of
from tests.support.memory.write_checks import PlacedShoot, seed_rejection_reason


class MemoryScheduling(MemoryReads):
    """The scheduler's writes of `ports.store.Store`. `reporter` signs the Events."""

    def __init__(self, state: MemoryState, *, reporter: str) -> None:
        super().__init__(state)
        self._reporter = reporter

    async def bind(self, bindings: Sequence[SeedBinding], usage_since: int | None = 0) -> BindResults:
        """Place shoots."""
        self.state.check_open()
        outcomes: list[BindOutcome] = []
        for binding in bindings:
            with tracing.within(binding.trace):
                outcomes.append(self._bind_one(binding))
        for binding, outcome in zip(bindings, outcomes, strict=True):
            if outcome == "bound":
                self.state.announce_followers(ObjectKey("shoot", binding.namespace, binding.name), ())
        return BindResults(outcomes, await self._usage_since(usage_since))

    def _bind_one(self, binding: SeedBinding) -> BindOutcome:
        state, key = self.state, ObjectKey("shoot", binding.namespace, binding.name)
        row = state.rows.get(key)
        if row is None or row.stored.uid != binding.uid:
            return "gone"
        if row.stored.is_deleting:
            return "deleting"
        if row.stored.parts.seed_name:
            return "scheduled"
        if row.stored.generation != binding.generation:
            return "changed"
        placed = PlacedShoot(row.stored.uid, row.after)
        requested = row.index_keys.requests
        rejection = seed_rejection_reason(state, binding.seed, binding.scheduling_generation, key, placed, requested)
        if rejection is None:
            self._bind_shoot(row, binding)
        return "full" if rejection == "short" else rejection or "bound"

    def _bind_shoot(self, row: ObjectRow, binding: SeedBinding) -> None:
        state, old, seeds = self.state, row.stored, row.seeds
        finalizers = old.parts.finalizers
        spec = split({"apiVersion": "", "kind": "Shoot", "spec": binding.spec}).spec if binding.spec else old.parts.spec
        state.leave_class(row)
        row.stored = msgspec.structs.replace(
            old,
            parts=old.parts._replace(
                seed_name=binding.seed,
                spec=spec,
                finalizers=finalizers if FINALIZER in finalizers else (*finalizers, FINALIZER),
            ),
            version=state.next_version(),
            generation=old.generation + 1,
        )
        self._clear_unschedulable(row)
        state.move_usage(old.key, seeds, row.seeds, row.index_keys.requests, row.index_keys.requests)
        state.announce(row)
        now = state.now()
        row.bind_record = BindRecord(now, binding.decision_record) if binding.decision_record else None
        event = scheduled_event(old.key, old.uid, binding.seed, self._reporter)
        state.append(EventEntry(state.next_entry(), event, f"{old.uid}.{row.stored.version}", 1, now, now))
        if is_migrating(row.stored.parts):
            state.enqueue(f"migration.{old.key.namespace}.{old.key.name}")

    async def mark_unschedulable(
        self, unschedulable: Sequence[UnschedulableShoot], usage_since: int | None = 0
    ) -> UnschedulableResults:
        """Let shoots wait."""
        self.state.check_open()
        return UnschedulableResults(
            [self._mark_one(unschedulable_shoot) for unschedulable_shoot in unschedulable],
            await self._usage_since(usage_since),
        )

    def _mark_one(self, unschedulable_shoot: UnschedulableShoot) -> UnschedulableResult:
        state, key = self.state, ObjectKey("shoot", unschedulable_shoot.namespace, unschedulable_shoot.name)
        row = state.rows.get(key)
        if (
            row is None
            or not row.is_pending
            or (row.stored.uid, row.stored.generation, row.index_keys.scheduler_name)
            != (unschedulable_shoot.uid, unschedulable_shoot.generation, unschedulable_shoot.scheduler_name)
        ):
            return UnschedulableResult("done", 0)
        if (
            state.unblock_objects > unschedulable_shoot.seen.objects
            or state.unblock_usage != unschedulable_shoot.seen.usage
        ):
            return UnschedulableResult("again", 0)
        same_generation = row.attempted_generation == unschedulable_shoot.generation
        row.attempts, row.attempted_generation = row.attempts * same_generation + 1, unschedulable_shoot.generation
        state.leave_class(row)
        row.equivalence_class, row.activation_trace = unschedulable_shoot.equivalence_class, unschedulable_shoot.trace
        classes = state.waiting[unschedulable_shoot.scheduler_name]
        waiting = classes.setdefault(
            unschedulable_shoot.equivalence_class, UnschedulableIndex(unschedulable_shoot.descriptor)
        )
        waiting.descriptor = unschedulable_shoot.descriptor
        waiting.shoots[key] = state.total_unblock_index
        if row.unschedulable_message != unschedulable_shoot.message:
            self._mark_unschedulable(row, unschedulable_shoot)
        return UnschedulableResult("parked", row.attempts)

    def _mark_unschedulable(self, row: ObjectRow, unschedulable_shoot: UnschedulableShoot) -> None:
        state = self.state
        row.unschedulable_message = unschedulable_shoot.message
        row.stored = msgspec.structs.replace(
            row.stored,
            version=state.next_version(),
            pending=pending_operation(unschedulable_shoot.message, state.now()),
        )
        state.announce(row, with_binding=False)
        state.record_event(
            EventRecord(
                about=row.stored.key,
                uid=row.stored.uid,
                type="Warning",
                reason="SchedulingFailed",
                message=unschedulable_shoot.message,
                reporter=self._reporter,
                action="Reconcile",
            ),
            series=True,
        )

    async def activate(self, scheduler_name: str, equivalence_class: str, limit: int) -> int:
        """Queue waiting shoots again."""
        state = self.state
        state.check_open()
        waiting = state.waiting.get(scheduler_name, {}).get(equivalence_class)
        rejected = waiting.shoots.items() if waiting else ()
        unseen = sorted(
            (unblock_index, member_of(key), key)
            for key, unblock_index in rejected
            if unblock_index < state.total_unblock_index
        )
        for _, _, key in unseen[:limit]:
            row = state.rows[key]
            with tracing.within(row.activation_trace):
                state.leave_class(row)
                state.enqueue_shoot(scheduler_name, key)
        return len(unseen[:limit])

    def _clear_unschedulable(self, row: ObjectRow) -> None:
        row.stored = msgspec.structs.replace(row.stored, pending=b"")
        row.unschedulable_message, row.attempts, row.attempted_generation = "", 0, 0
