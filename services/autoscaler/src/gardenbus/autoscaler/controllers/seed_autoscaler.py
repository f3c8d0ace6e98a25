"""Reconciles one SeedAutoscaler: reads its set, decides, writes the status, and scales the set.

    read the autoscaler, its set, then the replicas  (what was read first is checked last)
    decide                                           (pure)
    write the status, with the change to come        (only on the version read)
    request the change                               (only on the versions of both)
    reconcile again: the set shows it                (Event, time, next decision)

A process that ends anywhere in between is made up for by the next reconciliation, and an outdated decision writes
nothing.
"""

import asyncio
from dataclasses import dataclass
from typing import Literal

import structlog

from gardenbus.autoscaler import metrics
from gardenbus.autoscaler.domain.manifests import (
    amounts,
    is_controlled_by,
    ordered_replicas,
    pending_replica,
    replica_of,
    unschedulable_message,
)
from gardenbus.autoscaler.domain.status import with_decision, with_failure
from gardenbus.autoscaler.scale_client import ScaleClient
from gardenbus.autoscaler.watch.pending_shoots import PendingShootCounter
from gardenbus.autoscaling.decision import ScalingDecision, decide
from gardenbus.autoscaling.seed_set import SeedSetState
from gardenbus.common.api.configuration.seed_autoscaler import AutoscalerConfiguration
from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.garden.managed_seed_sets import template_seed
from gardenbus.common.api.garden.seed_autoscalers import SeedAutoscaler
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done, ReconcileRequest, ReconcileResult, Requeue, RequeueAfter
from gardenbus.common.controller.listing import list_all
from gardenbus.common.errors import Conflict, NotFound, Terminal
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.recovery import RECOVERY_POLL_SECONDS, Recovery
from gardenbus.common.ports.store import EventRecord, Store

_log = structlog.stdlib.get_logger()

KIND = "seedautoscaler"
REPORTER = "seed-autoscaler"
SOONEST_SECONDS = 1.0
STORE_RECOVERING = "StoreRecovering"
PROSPECTIVE_SEED = "a-new-seed.of.the-set"
"""Name of the hypothetical seed: no Seed has dots in its name."""


@dataclass(kw_only=True, eq=False)
class SeedAutoscalerReconciler:
    """See the module. Any number of replicas may reconcile the same autoscaler."""

    store: Store
    scale: ScaleClient
    pending_shoots: PendingShootCounter
    clock: Clock
    configuration: AutoscalerConfiguration

    async def reconcile(self, request: ReconcileRequest) -> ReconcileResult:
        """Reconcile once. Raises Transient when a server is away, Terminal when the autoscaler cannot be read."""
        stored = await self.store.get(ObjectKey(KIND, request.namespace, request.name))
        if stored is None or stored.is_deleting:
            metrics.forget(request.tail)
            return Done("it is gone" if stored is None else "it is being deleted")
        autoscaler = SeedAutoscaler.from_document(stored.encoded())
        target = await self._target(stored, autoscaler)
        if target is None:
            message = f"ManagedSeedSet {stored.key.namespace}/{autoscaler.spec.scale_target_ref.name} not found"
            return await self._fail(stored, "FailedGetScale", message)
        if target.is_deleting:
            return await self._fail(stored, "TargetDeleting", f"{target.key} is being deleted")
        recovery = await self.store.recovery()
        if recovery is not None:
            return await self._wait(stored, recovery)
        seeds = await self._seeds(target)
        now = self.clock.now()
        decision = decide(autoscaler.spec, autoscaler.status, seeds, now, self.configuration.pace)
        await self._report_completed(stored, decision)
        document = stored.document()
        written = await self.store.update(stored, with_decision(document, decision, seeds, now))
        _record_metrics(request.tail, decision, seeds)
        metrics.MIN.labels(request.tail).set(autoscaler.spec.min_replicas)
        metrics.MAX.labels(request.tail).set(autoscaler.spec.max_replicas)
        if decision.rescale is not None and isinstance(written, StoredObject):
            return await self._rescale(written, target, decision)
        return self._requeue(decision)

    async def _wait(self, stored: StoredObject, recovery: Recovery) -> ReconcileResult:
        """Request nothing on a store that does not know yet what runs on its seeds."""
        message = f"the set is not scaled: {recovery.text}"
        await self._record(stored, "Warning", STORE_RECOVERING, message)
        await self._fail(stored, STORE_RECOVERING, message)
        _log.warning("autoscaler.waiting", autoscaler=_tail(stored), reason=recovery.text)
        return RequeueAfter(RECOVERY_POLL_SECONDS, message)

    async def _target(self, stored: StoredObject, autoscaler: SeedAutoscaler) -> StoredObject | None:
        reference = autoscaler.spec.scale_target_ref
        if not reference.name or reference.kind not in ("", "ManagedSeedSet"):
            return None
        return await self.store.get(ObjectKey("managedseedset", stored.key.namespace, reference.name))

    async def _seeds(self, target: StoredObject) -> SeedSetState:
        """The set in numbers. Read in this order: replicas, usage, pending shoots, and at last placed ones."""
        document = target.document()
        shoots = await list_all(self.store, "shoot", target.key.namespace)
        managed_seeds = await list_all(self.store, "managedseed", target.key.namespace)
        own = [shoot for shoot in shoots if is_controlled_by(shoot.document(), target.uid)]
        seeds = await self.store.get_many([ObjectKey("seed", "", shoot.key.name) for shoot in own])
        new_seed = template_seed(document, PROSPECTIVE_SEED)
        unscheduled = await self.pending_shoots.count(new_seed, garden_shoots=shoots, managed_seeds=managed_seeds)
        on_seeds = await asyncio.gather(*(self.store.shoots_on(shoot.key.name) for shoot in own))
        by_name = {each.key.name: each.document() for each in managed_seeds}
        requested = await asyncio.gather(*(self.store.requested_on(shoot.key.name) for shoot in own))
        busy_with = pending_replica(document)
        return SeedSetState(
            ordered=ordered_replicas(document),
            replicas=[
                replica_of(
                    shoot.document(),
                    by_name.get(shoot.key.name),
                    seed.document() if seed else None,
                    busy_with,
                    taken,
                )
                for shoot, seed, taken in zip(own, seeds, requested, strict=True)
            ],
            new_seed=amounts(section(new_seed, "status", "allocatable")),
            shoots=len({key for keys in on_seeds for key in keys}),
            pending=unscheduled.pending,
            being_scheduled=unscheduled.being_scheduled,
            unschedulable=unschedulable_message(document),
        )

    async def _rescale(self, stored: StoredObject, target: StoredObject, decision: ScalingDecision) -> ReconcileResult:
        """Request the change; the next reconciliation, at once, observes and reports it."""
        rescale = decision.rescale
        assert rescale is not None, "called only for a change"
        try:
            await self.scale.set_replicas(target, rescale.to_replicas, stored)
        except Conflict as error:
            return Requeue(error.message)
        except (Terminal, NotFound) as error:
            metrics.REJECTED_CHANGES.labels(_tail(stored)).inc()
            message = f"New size: {rescale.to_replicas}; reason: {rescale.reason}; error: {error.message}"
            await self._record(stored, "Warning", "FailedRescale", message)
            return await self._fail(stored, "FailedUpdateScale", f"the set was not scaled: {error.message}")
        direction = "up" if rescale.to_replicas > rescale.from_replicas else "down"
        metrics.RESCALED.labels(_tail(stored), direction).inc()
        _log.info(
            "set.rescaled",
            managed_seed_set=str(target.key),
            from_replicas=rescale.from_replicas,
            to_replicas=rescale.to_replicas,
            reason=rescale.reason,
        )
        return Requeue("the set was scaled")

    async def _report_completed(self, stored: StoredObject, decision: ScalingDecision) -> None:
        """Record an Event for a completed change; before it is written to the status, so at least once."""
        if decision.completed is not None:
            done = decision.completed
            message = f"New size: {done.to_replicas}; reason: {done.reason}"
            await self._record(stored, "Normal", "SuccessfulRescale", message)

    async def _fail(self, stored: StoredObject, reason: str, message: str) -> ReconcileResult:
        document: Document = stored.document()
        await self.store.update(stored, with_failure(document, reason, message, self.clock.now()))
        return RequeueAfter(self.configuration.sync_period.total_seconds(), message)

    async def _record(
        self, stored: StoredObject, kind: Literal["Normal", "Warning"], reason: str, message: str
    ) -> None:
        await self.store.record_event(
            EventRecord(about=stored.key, uid=stored.uid, type=kind, reason=reason, message=message, reporter=REPORTER)
        )

    def _requeue(self, decision: ScalingDecision) -> RequeueAfter:
        seconds = self.configuration.sync_period.total_seconds()
        if decision.recheck_at is not None:
            seconds = min(seconds, (decision.recheck_at - self.clock.now()).total_seconds())
        return RequeueAfter(max(seconds, SOONEST_SECONDS), decision.proposal.reason)


def _record_metrics(autoscaler: str, decision: ScalingDecision, seeds: SeedSetState) -> None:
    metrics.DESIRED.labels(autoscaler).set(decision.desired)
    metrics.CURRENT.labels(autoscaler).set(len(seeds.staying))
    metrics.PENDING.labels(autoscaler).set(seeds.pending)


def _tail(stored: StoredObject) -> str:
    return f"{stored.key.namespace}.{stored.key.name}"
