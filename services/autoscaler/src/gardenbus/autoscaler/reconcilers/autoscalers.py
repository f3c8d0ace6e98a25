"""Looks at one SeedAutoscaler: reads its set, decides, writes what was decided, and has the set scaled.

    read the autoscaler, its set, then the replicas  (what was read first is checked last)
    decide                                           (pure)
    write the status, with the change to come        (only on the version read)
    ask for the change                               (only on the versions of both)
    look again: the set shows it                     (Event, time, next decision)

A process that ends anywhere in between is made up for by the next look, and a hand that decided on something old
writes nothing.
"""

import asyncio
from collections.abc import Sequence
from typing import Literal

import structlog

from gardenbus.autoscaler.decide.autoscaling import Decision, decide
from gardenbus.autoscaler.decide.configuration import AutoscalerConfiguration
from gardenbus.autoscaler.decide.landscape import SetOfSeeds
from gardenbus.autoscaler.decide.reading import (
    amounts,
    is_controlled_by,
    ordered_replicas,
    pending_replica,
    replica_of,
    unschedulable_because,
)
from gardenbus.autoscaler.decide.status import with_decision, with_failure
from gardenbus.autoscaler.reconcilers import counters
from gardenbus.autoscaler.reconcilers.demand import Demand
from gardenbus.autoscaler.reconcilers.scale import Scale
from gardenbus.common.errors import Conflict, NotFound, Terminal
from gardenbus.common.machinery.controller import After, Again, Done, Outcome, WorkRequest
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import EventRecord, Store
from gardenbus.common.resources.document import Document, StoredObject, section
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.managed_seed_sets import template_seed
from gardenbus.common.resources.seed_autoscalers import SeedAutoscaler

_log = structlog.stdlib.get_logger()

KIND = "seedautoscaler"
REPORTER = "seed-autoscaler"
SOONEST_SECONDS = 1.0
PROSPECT = "a-new-seed.of.the-set"
"""What the seed that is tried on the landscape is called: no Seed has dots in its name."""


class AutoscalerReconciler:
    """See the module. Any number of replicas may look at the same autoscaler."""

    def __init__(
        self, *, store: Store, scale: Scale, demand: Demand, clock: Clock, configuration: AutoscalerConfiguration
    ) -> None:
        self._store = store
        self._scale = scale
        self._demand = demand
        self._clock = clock
        self._configuration = configuration

    async def reconcile(self, request: WorkRequest) -> Outcome:
        """Look once. Raises Transient when a server is away, Terminal when the autoscaler cannot be read."""
        stored = await self._store.get(ObjectKey(KIND, request.namespace, request.name))
        if stored is None or stored.is_deleting:
            counters.forget(request.tail)
            return Done("it is gone" if stored is None else "it is being deleted")
        autoscaler = SeedAutoscaler.from_document(stored.encoded())
        target = await self._target(stored, autoscaler)
        if target is None:
            message = f"ManagedSeedSet {stored.key.namespace}/{autoscaler.spec.scale_target_ref.name} is not there"
            return await self._fail(stored, "FailedGetScale", message)
        if target.is_deleting:
            return await self._fail(stored, "TargetDeleting", f"{target.key} is being deleted")
        seeds = await self._seeds(target)
        now = self._clock.now()
        decision = decide(autoscaler.spec, autoscaler.status, seeds, now, self._configuration.pace)
        await self._tell(stored, decision)
        document = stored.document()
        written = await self._store.update(stored, with_decision(document, decision, seeds, now))
        _show(request.tail, decision, seeds)
        counters.MIN.labels(request.tail).set(autoscaler.spec.min_replicas)
        counters.MAX.labels(request.tail).set(autoscaler.spec.max_replicas)
        if decision.rescale is not None and isinstance(written, StoredObject):
            return await self._change(written, target, decision)
        return self._later(decision)

    async def _target(self, stored: StoredObject, autoscaler: SeedAutoscaler) -> StoredObject | None:
        reference = autoscaler.spec.scale_target_ref
        if not reference.name or reference.kind not in ("", "ManagedSeedSet"):
            return None
        return await self._store.get(ObjectKey("managedseedset", stored.key.namespace, reference.name))

    async def _seeds(self, target: StoredObject) -> SetOfSeeds:
        """The set in numbers. Read in this order: replicas, usage, who waits, and at last who is placed."""
        document = target.document()
        shoots = await self._in_namespace("shoot", target.key.namespace)
        managed_seeds = await self._in_namespace("managedseed", target.key.namespace)
        own = [shoot for shoot in shoots if is_controlled_by(shoot.document(), target.uid)]
        seeds = await self._store.get_many([ObjectKey("seed", "", shoot.key.name) for shoot in own])
        new_seed = template_seed(document, PROSPECT)
        waiting = await self._demand.waiting(new_seed, garden_shoots=shoots, managed_seeds=managed_seeds)
        on_seeds = await asyncio.gather(*(self._store.shoots_on(shoot.key.name) for shoot in own))
        by_name = {each.key.name: each.document() for each in managed_seeds}
        busy_with = pending_replica(document)
        return SetOfSeeds(
            ordered=ordered_replicas(document),
            replicas=[
                replica_of(shoot.document(), by_name.get(shoot.key.name), seed.document() if seed else None, busy_with)
                for shoot, seed in zip(own, seeds, strict=True)
            ],
            new_seed=amounts(section(new_seed, "status", "allocatable")),
            shoots=len({key for keys in on_seeds for key in keys}),
            pending=waiting.pending,
            coming=waiting.coming,
            unschedulable=unschedulable_because(document),
        )

    async def _in_namespace(self, kind: str, namespace: str) -> Sequence[StoredObject]:
        found: list[StoredObject] = []
        token: str | None = None
        while True:
            page = await self._store.list_page(kind, namespace, continue_token=token)
            found += page.objects
            token = page.continue_token
            if token is None:
                return found

    async def _change(self, stored: StoredObject, target: StoredObject, decision: Decision) -> Outcome:
        """Have the set scaled; the next look, at once, sees it done and says so."""
        rescale = decision.rescale
        assert rescale is not None, "asked only for a change"
        try:
            await self._scale.change(target, rescale.to_replicas, stored)
        except Conflict as error:
            return Again(error.message)
        except (Terminal, NotFound) as error:
            counters.REFUSED.labels(_tail(stored)).inc()
            message = f"New size: {rescale.to_replicas}; reason: {rescale.reason}; error: {error.message}"
            await self._record(stored, "Warning", "FailedRescale", message)
            return await self._fail(stored, "FailedUpdateScale", f"the set was not scaled: {error.message}")
        direction = "up" if rescale.to_replicas > rescale.from_replicas else "down"
        counters.RESCALED.labels(_tail(stored), direction).inc()
        _log.info(
            "set.rescaled",
            managed_seed_set=str(target.key),
            from_replicas=rescale.from_replicas,
            to_replicas=rescale.to_replicas,
            reason=rescale.reason,
        )
        return Again("the set was scaled")

    async def _tell(self, stored: StoredObject, decision: Decision) -> None:
        """Announce a change that the set shows now; told before it is noted, so that it is told at least once."""
        if decision.carried_out is not None:
            done = decision.carried_out
            message = f"New size: {done.to_replicas}; reason: {done.reason}"
            await self._record(stored, "Normal", "SuccessfulRescale", message)

    async def _fail(self, stored: StoredObject, reason: str, message: str) -> Outcome:
        document: Document = stored.document()
        await self._store.update(stored, with_failure(document, reason, message, self._clock.now()))
        return After(self._configuration.sync_period.total_seconds(), message)

    async def _record(
        self, stored: StoredObject, kind: Literal["Normal", "Warning"], reason: str, message: str
    ) -> None:
        await self._store.record_event(
            EventRecord(about=stored.key, uid=stored.uid, type=kind, reason=reason, message=message, reporter=REPORTER)
        )

    def _later(self, decision: Decision) -> After:
        seconds = self._configuration.sync_period.total_seconds()
        if decision.again_at is not None:
            seconds = min(seconds, (decision.again_at - self._clock.now()).total_seconds())
        return After(max(seconds, SOONEST_SECONDS), decision.need.reason)


def _show(autoscaler: str, decision: Decision, seeds: SetOfSeeds) -> None:
    counters.DESIRED.labels(autoscaler).set(decision.desired)
    counters.CURRENT.labels(autoscaler).set(len(seeds.staying))
    counters.PENDING.labels(autoscaler).set(seeds.pending)


def _tail(stored: StoredObject) -> str:
    return f"{stored.key.namespace}.{stored.key.name}"
