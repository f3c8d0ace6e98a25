"""Reconciler of shoots: compares binding and record, and performs the action of `domain.operations`.

| observed   | record                | action                                                      |
|------------|-----------------------|-------------------------------------------------------------|
| shoot      | none, or the same uid | the next action (`domain.operations`)                       |
| shoot      | another uid           | tear that down first: the name has a new owner              |
| unconfirmed| another uid           | keep it, and query the shoot: the stream may have gone back |
| tombstone  | some                  | tear it down without reporting (resources that a migrated   |
|            |                       | shoot needs elsewhere are left alone)                       |
| tombstone  | some, tombstone of    | keep it, and query the shoot: a restored store remembers    |
|            | another uid           | the removal of an earlier one, and nothing of this one      |
| tombstone  | none                  | confirm the deletion, so that the tombstone is purged       |
| nothing    | some                  | keep it, and query the shoot                                |
| unconfirmed| none                  | query it: a purged message may have come back               |
"""

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Literal, assert_never

import msgspec
import structlog

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.backoff import Backoff
from gardenbus.common.ports import tracing
from gardenbus.gardenlet.clients.final_reports import FinalReports, result_of
from gardenbus.gardenlet.clients.shoot_states import KEEP_AGAIN_SECONDS, SAVE_AGAIN_SECONDS, ShootStates
from gardenbus.gardenlet.domain.flows import SAVE_STATE
from gardenbus.gardenlet.domain.grace_periods import GracePeriods
from gardenbus.gardenlet.domain.operation_events import (
    OperationEvent,
    failure_event,
    reverted_event,
    start_event,
    success_event,
)
from gardenbus.gardenlet.domain.operations import (
    REPEAT_AFTER,
    SEED_NOT_READY_RETRY,
    AwaitDependency,
    AwaitExtensions,
    Claim,
    DropStaleRecord,
    NothingBuilt,
    NothingToDo,
    ObservedShoot,
    RepeatReport,
    RunOperation,
    SeedNotReady,
    ShootAction,
    ShootSnapshot,
    adopted,
    is_still_wanted,
    next_action,
)
from gardenbus.gardenlet.domain.reconcile_result import ShootResult
from gardenbus.gardenlet.domain.shoot_record import Run, ShootName, ShootRecord, held_manifest, with_status
from gardenbus.gardenlet.domain.shoot_status import (
    awaiting_dependency,
    awaiting_extensions,
    care_patch,
    failed,
    networking_patch,
    progressed,
    seed_not_ready,
    started,
    succeeded,
)
from gardenbus.gardenlet.metrics import observe_operation
from gardenbus.gardenlet.operation.flow_runner import FlowResult, run_flow
from gardenbus.gardenlet.operation.teardown import tear_down
from gardenbus.gardenlet.seed import ServedSeed
from gardenbus.gardenlet.tracing import claim_span, operation_span
from gardenbus.gardenlet.watch.binding_cache import Tombstone

_log = structlog.stdlib.get_logger()

QUERY_INTERVAL_SECONDS = 60.0
INACTIVE_REQUEUE_SECONDS = 2.0
"""Requeue delay after the Lease was not renewed in time: it may still be, or another holder has it."""

_SYNC_JITTER = 0.05
_BACKOFF = Backoff()


class ShootReconciler:
    """See the module. `missing_extensions` names what a shoot has to wait for."""

    def __init__(
        self, seed: ServedSeed, missing_extensions: Callable[[Callable[[], Document]], str] = lambda _: ""
    ) -> None:
        self._seed = seed
        self._settings, self._clock = seed.configuration.shoot, seed.clock
        self._cache, self._backend, self._reporter = seed.cache, seed.backend, seed.reporter
        self._missing_extensions = missing_extensions
        self._states = ShootStates(seed.cache, seed.reporter)
        self._final_reports = FinalReports(seed.reporter, seed.clock)
        self._grace_periods = GracePeriods(seed.clock)

    async def reconcile(self, shoot: ShootName) -> float | None:
        """Perform the next action; returns the seconds after which to requeue, None for not before a change."""
        if not self._seed.is_active:
            return INACTIVE_REQUEUE_SECONDS
        began = self._clock.monotonic()
        trace = self._cache.traces.get(shoot, "")
        await self._states.handle_tombstone(shoot)
        outcome = await self._reconcile(shoot)
        if outcome.name != "waiting":
            record = self._backend.load(shoot)
            _log.info(
                "reconcile.finished",
                controller="shoot",
                seed=self._seed.name,
                object="/".join(shoot),
                outcome=outcome.name,
                reason=outcome.reason,
                attempt=record.attempts if record else 0,
                duration_ms=round(1000 * (self._clock.monotonic() - began)),
                **tracing.fields(trace),
            )
        return outcome.requeue_after_seconds

    async def _reconcile(self, shoot: ShootName) -> ShootResult:
        observed = self._cache.shoots.get(shoot)
        record = self._backend.load(shoot)
        if observed is None:
            if record is None or not self._cache.is_complete:
                return ShootResult("waiting")
            return await self._query_recorded(shoot, record, "recorded but not observed")
        if isinstance(observed, Tombstone):
            if record is not None and not observed.is_about(record.uid):
                return await self._query_recorded(shoot, record, "another one of its name was removed")
            outcome = ShootResult("waiting")
            if record is not None:
                operation = "Leave" if observed.left else "Delete"
                outcome = await self._tear_down(shoot, record, operation, is_wanted=lambda: self._cache.is_gone(shoot))
            if self._backend.load(shoot) is None and self._seed.is_active:
                await self._reporter.confirm_gone(ObjectKey("shoot", *shoot), tombstone=observed.sequence)
                self._cache.forget(shoot, observed)
                self._final_reports.forget(shoot)
            return outcome
        if record is None and self._cache.is_unconfirmed(shoot):
            return await self._verify_unconfirmed(observed)
        if record is not None and record.uid != observed.uid:
            return await self._make_room(shoot, record)
        snapshot = ShootSnapshot(
            seed_name=self._seed.name,
            readiness=self._seed.readiness,
            now=self._clock.now(),
            sync_period=self._settings.sync_period,
            respect_ignore=self._settings.respect_ignore,
            version=self._seed.identity["version"],
            has_state=self._states.can_restore(observed, record),
            missing_extensions=self._missing_extensions(lambda: observed.spec),
        )
        action = next_action(observed, record, snapshot)
        if self._cache.traces and isinstance(action, NothingToDo) and action.reason == "settled":
            self._cache.traces.pop(shoot, None)  # nothing to do for the request
        return await self._act(observed, record, action)

    async def _make_room(self, shoot: ShootName, record: ShootRecord) -> ShootResult:
        """Tear down what has lost its name to another shoot; keep and query it if only a replay says so."""
        if self._cache.is_unconfirmed(shoot):  # of a stream that went back it may be the older of the two
            if not self._cache.is_complete:
                return ShootResult("waiting")
            return await self._query_recorded(shoot, record, "a replay has another one of its name")
        outcome = await self._tear_down(shoot, record, "Delete")
        return outcome._replace(requeue_after_seconds=0.0) if outcome.name == "torn-down" else outcome

    async def _query_recorded(self, shoot: ShootName, record: ShootRecord, reason: str) -> ShootResult:
        """Query a shoot that runs here; what the store does not remember the removal of is kept."""
        await self._reporter.query(ObjectKey("shoot", *shoot), record.uid, held_manifest(record))
        return ShootResult("queried", QUERY_INTERVAL_SECONDS, reason)

    async def _verify_unconfirmed(self, observed: ObservedShoot) -> ShootResult:
        """Query a shoot that only a replay contains, instead of starting it: the message may predate its move."""
        if not self._cache.is_complete:
            return ShootResult("waiting")
        await self._reporter.query(observed.key, observed.uid)
        return ShootResult("queried", QUERY_INTERVAL_SECONDS, "unconfirmed, and not recorded")

    async def _act(self, observed: ObservedShoot, record: ShootRecord | None, action: ShootAction) -> ShootResult:
        match action:
            case Claim():
                self._claim(observed, record)
                return ShootResult("claimed", REPEAT_AFTER.total_seconds())
            case RunOperation(run, resumed):
                self._grace_periods.end(observed.full_name)
                began = self._clock.monotonic()
                outcome = await self._run_traced(observed, record or adopted(observed), run, resumed=resumed)
                observe_operation(run.operation, outcome.name, self._clock.monotonic() - began)
                return outcome
            case SeedNotReady() | AwaitDependency() | AwaitExtensions():
                return self._postpone(observed, record, action)
            case DropStaleRecord():
                assert record is not None
                shoot = observed.full_name
                outcome = await self._tear_down(shoot, record, "Leave")
                return outcome._replace(requeue_after_seconds=0.0) if outcome.name == "torn-down" else outcome
            case NothingBuilt():
                return self._repeat(observed, succeeded("Delete", now=self._clock.now()), outcome="let-go")
            case RepeatReport():
                assert record is not None
                return self._repeat(observed, result_of(observed, record), outcome="repeated")
            case NothingToDo("settled", seconds) if record is not None and await self._states.keep(observed, record):
                return ShootResult("saved", min(seconds or KEEP_AGAIN_SECONDS, KEEP_AGAIN_SECONDS))
            case NothingToDo(reason, seconds):
                return ShootResult("waiting", None if seconds is None else self._jittered(reason, seconds), reason)
            case _:
                assert_never(action)

    def _claim(self, observed: ObservedShoot, record: ShootRecord | None) -> None:
        """Report that the shoot is here; all of what is built already, as the store went back before its claim."""
        shoot, built = observed.full_name, {} if record is None or record.run is None else _whole_status(record)
        claim: Document = built | {"seedName": self._seed.name}
        trace = self._cache.traces.get(shoot)
        if trace is None:
            self._report(observed, claim)
            return
        span = claim_span(trace, shoot, self._seed.name)
        with tracing.within(span.traceparent):
            self._report(observed, claim)
        span.end()

    def _postpone(
        self,
        observed: ObservedShoot,
        record: ShootRecord | None,
        why: SeedNotReady | AwaitDependency | AwaitExtensions,
    ) -> ShootResult:
        """Report once why the operation cannot start; not before the cache is complete."""
        if isinstance(why, AwaitDependency) and not self._cache.is_complete:
            return ShootResult("waiting")
        if isinstance(why, AwaitExtensions) or (isinstance(why, AwaitDependency) and not why.is_rejected):
            left = self._grace_periods.left(observed.full_name, (observed.uid, observed.generation, why.operation))
            if left > 0:
                return ShootResult("waiting", left, why.problem)
        record = record or adopted(observed)
        patch = _POSTPONED[type(why)](why.operation, record.last_operation, why.problem, now=self._clock.now())
        if patch is not None:
            self._keep(observed, record, patch)
        return ShootResult("postponed", SEED_NOT_READY_RETRY.total_seconds(), why.problem)

    def _repeat(self, observed: ObservedShoot, result: Document, *, outcome: str) -> ShootResult:
        left = self._final_reports.repeat(observed, result)
        return ShootResult("waiting", left) if left > 0 else ShootResult(outcome, REPEAT_AFTER.total_seconds())

    async def _run_traced(
        self, observed: ObservedShoot, record: ShootRecord, run: Run, *, resumed: bool
    ) -> ShootResult:
        shoot = observed.full_name
        trace = self._cache.traces.get(shoot)
        if trace is None:
            return await self._run(observed, record, run, resumed=resumed)
        span = operation_span(trace, shoot, self._seed.name, run)
        try:
            with tracing.within(span.traceparent):
                outcome = await self._run(observed, record, run, resumed=resumed)
        except BaseException as error:
            span.end(failed=str(error) or type(error).__name__)
            raise
        span.end(failed=outcome.reason if outcome.name in {"error", "failed"} else "", outcome=outcome.name)
        if outcome.name in {"reconciled", "migrated", "deleted"}:
            self._cache.trace_ended(shoot, trace)
        return outcome

    async def _run(self, observed: ObservedShoot, record: ShootRecord, run: Run, *, resumed: bool) -> ShootResult:
        has_extensions = self._backend.has_extensions
        if record.has_extensions != has_extensions:  # another configuration: what a step makes is more, or less
            run = msgspec.structs.replace(run, done=())
        if run.operation == "Delete":
            await self._states.release(observed, record)
        if (reverted := reverted_event(run, record.run)) is not None:
            self._record(observed, reverted)
        patch = started(
            observed, record, run, seed_name=self._seed.name, gardener=self._seed.identity, now=self._clock.now()
        )
        record = msgspec.structs.replace(
            record,
            run=run,
            has_workers=observed.has_workers or record.has_workers
            if run.operation == "Delete"
            else observed.has_workers,
            has_extensions=has_extensions,
            attempts=record.attempts if resumed else 0,
            retry_at=None,
            state=record.state if resumed else self._states.initial_state(observed, record, run.operation),
        )
        record = self._keep(observed, record, patch)
        if not resumed:
            self._record(observed, start_event(run.operation))
        result = await run_flow(
            self._backend,
            record,
            observed,
            is_wanted=lambda: self._is_still_wanted(observed, run),
            on_progress=lambda record, tasks: self._report_progress(observed, record, tasks),
            precondition=lambda record, step: self._step_precondition(observed, record, step),
        )
        if result.failures:
            return await self._fail(observed, result)
        if result.blocked:
            return ShootResult("held", SAVE_AGAIN_SECONDS, result.blocked)
        if not result.is_complete:
            return ShootResult("stopped", 0.0, "something else is wanted")
        return await self._succeed(observed, result.record, run)

    async def _step_precondition(self, observed: ObservedShoot, record: ShootRecord, step: str) -> str | None:
        """Block a migration's teardown until the garden has the state that the next seed needs."""
        if step != SAVE_STATE or record.run is None:
            return None
        return await self._states.save(observed, record.state, generation=record.run.generation)

    async def _succeed(self, observed: ObservedShoot, record: ShootRecord, run: Run) -> ShootResult:
        now = self._clock.now()
        was_or_is_hibernated = record.is_hibernated or "hibernated" in record.status
        self._record(observed, success_event(run.operation))
        patch = succeeded(run.operation, now=now, is_hibernated=record.is_hibernated if was_or_is_hibernated else None)
        if run.operation in {"Migrate", "Delete"}:
            record = msgspec.structs.replace(record, attempts=0, retry_at=None, failed={})
            record = with_status(record, patch)
            self._backend.save(record)
            observed = self._cache.shoot(observed.full_name) or observed
            result = result_of(observed, record)
            self._final_reports.report(observed, patch | result, result)
            return ShootResult("migrated" if record.has_left else "deleted", REPEAT_AFTER.total_seconds())
        problems = await self._backend.problems(observed)
        patch |= networking_patch(record) | self._care_patch(record, problems, has_workers=observed.has_workers)
        record = msgspec.structs.replace(record, attempts=0, retry_at=None, failed={}, state={}, state_of_generation=0)
        self._keep(observed, record, patch)
        return ShootResult("reconciled", 0.0)

    async def _fail(self, observed: ObservedShoot, result: FlowResult) -> ShootResult:
        now = self._clock.now()
        patch = failed(result.record, result.failures, retry_duration=self._settings.retry_duration, now=now)
        patch |= networking_patch(result.record)
        attempts = result.record.attempts + 1
        wait = _BACKOFF.delay_seconds(attempts, random.random())
        record = msgspec.structs.replace(result.record, attempts=attempts, retry_at=now + timedelta(seconds=wait))
        self._keep(observed, record, patch)
        reason = "; ".join(failure.message for failure in result.failures)
        self._record(observed, failure_event(patch["lastOperation"]))
        if patch["lastOperation"]["state"] == "Failed":
            return ShootResult("failed", None, reason)
        return ShootResult("error", wait, reason)

    def _record(self, observed: ObservedShoot, event: OperationEvent) -> None:
        self._reporter.enqueue_event(
            observed.key, observed.uid, kind=event.type, reason=event.reason, message=event.message
        )

    async def _tear_down(
        self,
        shoot: ShootName,
        record: ShootRecord,
        operation: Literal["Delete", "Leave"],
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> ShootResult:
        return await tear_down(
            self._backend, shoot, record, operation, is_wanted=lambda: self._seed.is_active and is_wanted()
        )

    def _care_patch(self, record: ShootRecord, problems: Mapping[str, str], *, has_workers: bool) -> Document:
        return care_patch(
            record.status,
            problems,
            has_workers=has_workers,
            now=self._clock.now(),
            healthy_message=self._backend.healthy_message,
            is_hibernated=record.is_hibernated,
            thresholds=dict(self._settings.condition_thresholds),
        )

    async def care(self, observed: ObservedShoot, *, everything: bool) -> None:
        """Check a shoot's health and report changes; with `everything`, its full status in any case."""
        shoot = observed.full_name
        problems = await self._backend.problems(observed)
        record = self._backend.load(shoot)
        if (
            record is None
            or record.uid != observed.uid
            or observed.status_seed != self._seed.name
            or not self._seed.is_active
        ):
            return
        if record.has_left:
            return
        patch: Document = {}
        if record.was_created and not record.is_torn_down and not record.is_leaving:
            patch = self._care_patch(record, problems, has_workers=record.has_workers)
        if patch:
            record = with_status(record, patch)
            self._backend.save(record)
        if everything:
            self._report(observed, _whole_status(record))
        elif patch:
            self._report(observed, patch)

    def _is_still_wanted(self, observed: ObservedShoot, run: Run) -> bool:
        """True if a run should start another step: no change since ends it."""
        now = self._cache.shoot(observed.full_name)
        return (
            self._seed.is_active
            and now is not None
            and now.uid == observed.uid
            and is_still_wanted(run, now, self._seed.name)
            and not self._seed.readiness.is_stopped
        )

    def _report_progress(self, observed: ObservedShoot, record: ShootRecord, tasks: Sequence[str]) -> None:
        patch = progressed(record, tasks, now=self._clock.now())
        period = self._settings.progress_report_period.total_seconds()
        self._reporter.enqueue_status(observed.key, observed.uid, patch, within_seconds=period)

    def _keep(self, observed: ObservedShoot, record: ShootRecord, patch: Document) -> ShootRecord:
        """Merge a patch into the record, save it, then report it."""
        record = with_status(msgspec.structs.replace(record, manifest=observed.manifest or record.manifest), patch)
        self._backend.save(record)
        self._report(observed, patch)
        return record

    def _report(self, observed: ObservedShoot, patch: Document) -> None:
        self._reporter.enqueue_status(observed.key, observed.uid, patch)

    def _jittered(self, reason: str, seconds: float) -> float:
        """Spread the syncs of shoots that were reconciled together."""
        return seconds * (1 + _SYNC_JITTER * random.random()) if reason == "settled" else seconds


_POSTPONED = {
    SeedNotReady: seed_not_ready,
    AwaitDependency: awaiting_dependency,
    AwaitExtensions: awaiting_extensions,
}
"""Patches of the status of a shoot whose operation is postponed, by why it is."""


def _whole_status(record: ShootRecord) -> Document:
    """All that is known of a shoot's status; the current run reports more of its operation than the record has."""
    whole = {"lastErrors": None, "retryCycleStartTime": None} | record.status
    if record.last_operation.get("state") == "Processing":
        del whole["lastOperation"]
    return whole
