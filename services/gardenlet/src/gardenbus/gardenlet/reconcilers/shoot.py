"""Carries the shoots of one seed out: looks at what was told and what is kept, and does what `decide` says.

| told       | kept                  | what is done                                              |
|------------|-----------------------|-----------------------------------------------------------|
| a shoot    | nothing, or the same  | the next action (`decide.operations`)                     |
| a shoot    | another of its name   | that one is taken down first: its name has a new owner    |
| a tombstone| something             | it is taken down, without a status: nobody is left to ask |
|            |                       | (what a shoot that moved on needs there is left alone)    |
| a tombstone| nothing               | it is reported gone, so that the tombstone may go too     |
| nothing    | something             | it is kept, and asked about                               |
| by a replay| nothing               | it is asked about: what was taken off may have come back  |
"""

import random
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Literal, assert_never
from uuid import uuid4

import msgspec
import structlog

from gardenbus.common.errors import Unavailable
from gardenbus.common.machinery.backoff import Backoff
from gardenbus.common.ports import tracing
from gardenbus.common.ports.clock import Clock
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.gardenlet.backend.port import Backend, ShootName
from gardenbus.gardenlet.decide.configuration import ShootSettings
from gardenbus.gardenlet.decide.flows import SAVE_STATE
from gardenbus.gardenlet.decide.operations import (
    REPEAT_AFTER,
    UNFIT_SEED_RETRY,
    Action,
    Begin,
    Claim,
    Later,
    LetGo,
    NothingBuilt,
    RepeatReport,
    SeedFitness,
    SeedUnfit,
    ShootTold,
    Snapshot,
    Waiting,
    adopted,
    is_still_wanted,
    next_action,
)
from gardenbus.gardenlet.decide.record import Run, ShootRecord, with_status
from gardenbus.gardenlet.decide.status import (
    cared,
    failed,
    progressed,
    seed_unfit,
    started,
    succeeded,
    waiting,
)
from gardenbus.gardenlet.reconcilers import spans
from gardenbus.gardenlet.reconcilers.counters import operated
from gardenbus.gardenlet.reconcilers.flow import FlowResult, run_flow
from gardenbus.gardenlet.reconcilers.outcomes import Outcome
from gardenbus.gardenlet.reconcilers.patience import Patience
from gardenbus.gardenlet.reconcilers.reports import Reporter
from gardenbus.gardenlet.reconcilers.results import Results, result_of
from gardenbus.gardenlet.reconcilers.shoot_states import KEEP_AGAIN_SECONDS, SAVE_AGAIN_SECONDS, ShootStates
from gardenbus.gardenlet.reconcilers.taking_down import take_down
from gardenbus.gardenlet.reconcilers.told import Gone, Told

_log = structlog.stdlib.get_logger()

ASK_AGAIN_SECONDS = 60.0
UNSURE_SECONDS = 2.0
"""When to look again after the Lease could not be renewed in time: it may yet be, or another one has it."""

_SYNC_JITTER = 0.05
_BACKOFF = Backoff()


class ShootReconciler:
    """See the module. `is_active` says whether this gardenlet may still act."""

    def __init__(  # noqa: PLR0913 - the ports of one reconciler
        self,
        settings: ShootSettings,
        *,
        seed_name: str,
        told: Told,
        backend: Backend,
        reporter: Reporter,
        clock: Clock,
        identity: Document,
        fitness: Callable[[], SeedFitness],
        is_active: Callable[[], bool],
    ) -> None:
        self._settings = settings
        self._seed_name = seed_name
        self._told = told
        self._backend = backend
        self._reporter = reporter
        self._clock = clock
        self._identity = identity
        self._fitness = fitness
        self._is_active = is_active
        self._states = ShootStates(told, reporter)
        self._results = Results(reporter, clock)
        self._patience = Patience(clock)

    async def look(self, shoot: ShootName) -> float | None:
        """Do what is to be done for a shoot now; answers when to look again (seconds, None: when told)."""
        if not self._is_active():
            return UNSURE_SECONDS
        began = self._clock.monotonic()
        trace = self._told.traces.get(shoot, "")
        await self._states.obey(shoot)
        outcome = await self._look(shoot)
        if outcome.name != "waiting":
            record = self._backend.load(shoot)
            _log.info(
                "reconcile.finished",
                controller="shoot",
                seed=self._seed_name,
                object="/".join(shoot),
                reconcile_id=uuid4().hex[:12],
                outcome=outcome.name,
                reason=outcome.reason,
                attempt=record.attempts if record else 0,
                duration_ms=round(1000 * (self._clock.monotonic() - began)),
                **tracing.fields(trace),
            )
        return outcome.again_seconds

    async def _look(self, shoot: ShootName) -> Outcome:
        told = self._told.shoots.get(shoot)
        record = self._backend.load(shoot)
        if told is None:
            if record is None or not self._told.is_complete:
                return Outcome("waiting")
            await self._reporter.ask(ObjectKey("shoot", *shoot), record.uid)
            return Outcome("asked", ASK_AGAIN_SECONDS, "kept but not told of")
        if isinstance(told, Gone):
            outcome = Outcome("waiting")
            if record is not None:
                operation = "Leave" if told.left else "Delete"
                outcome = await self._take_down(shoot, record, operation, is_wanted=lambda: self._told.is_gone(shoot))
            if self._backend.load(shoot) is None and self._is_active():
                await self._reporter.gone(ObjectKey("shoot", *shoot), tombstone=told.sequence)
                self._told.forget(shoot, told)
                self._results.forget(shoot)
            return outcome
        if record is None and self._told.is_hearsay(shoot):
            return await self._doubt(told)
        if record is not None and record.uid != told.uid:
            outcome = await self._take_down(shoot, record, "Delete")
            return outcome._replace(again_seconds=0.0) if outcome.name == "torn-down" else outcome
        snapshot = Snapshot(
            seed_name=self._seed_name,
            fitness=self._fitness(),
            now=self._clock.now(),
            sync_period=self._settings.sync_period,
            respect_ignore=self._settings.respect_ignore,
            version=self._identity["version"],
            has_state=self._states.can_restore(told, record),
        )
        action = next_action(told, record, snapshot)
        if self._told.traces and isinstance(action, Later) and action.reason == "settled":
            self._told.traces.pop(shoot, None)  # there is nothing to do for whoever asked
        return await self._act(told, record, action)

    async def _doubt(self, told: ShootTold) -> Outcome:
        """Begin nothing on the word of a replay alone: it may tell what was true before the shoot left."""
        if not self._told.is_complete:
            return Outcome("waiting")
        await self._reporter.ask(ObjectKey("shoot", told.namespace, told.name), told.uid)
        return Outcome("asked", ASK_AGAIN_SECONDS, "told of by a replay, and nothing is kept")

    async def _act(self, told: ShootTold, record: ShootRecord | None, action: Action) -> Outcome:
        match action:
            case Claim():
                self._claim(told)
                return Outcome("claimed", REPEAT_AFTER.total_seconds())
            case Begin(run, resumed):
                self._patience.end((told.namespace, told.name))
                began = self._clock.monotonic()
                outcome = await self._run_traced(told, record or adopted(told), run, resumed=resumed)
                operated(run.operation, outcome.name, self._clock.monotonic() - began)
                return outcome
            case SeedUnfit() | Waiting():
                return self._postpone(told, record, action)
            case LetGo():
                assert record is not None
                shoot = (told.namespace, told.name)
                outcome = await self._take_down(shoot, record, "Leave")
                return outcome._replace(again_seconds=0.0) if outcome.name == "torn-down" else outcome
            case NothingBuilt():
                return self._repeat(told, succeeded("Delete", now=self._clock.now()), outcome="let-go")
            case RepeatReport():
                assert record is not None
                return self._repeat(told, result_of(told, record), outcome="repeated")
            case Later("settled", seconds) if record is not None and await self._states.keep(told, record):
                return Outcome("saved", min(seconds or KEEP_AGAIN_SECONDS, KEEP_AGAIN_SECONDS))
            case Later(reason, seconds):
                return Outcome("waiting", None if seconds is None else self._jittered(reason, seconds), reason)
            case _:
                assert_never(action)

    def _claim(self, told: ShootTold) -> None:
        shoot, claim = (told.namespace, told.name), {"seedName": self._seed_name}
        trace = self._told.traces.get(shoot)
        if trace is None:
            self._report(told, claim)
            return
        span = spans.claiming(trace, shoot, self._seed_name)
        with tracing.within(span.traceparent):
            self._report(told, claim)
        span.end()

    def _postpone(self, told: ShootTold, record: ShootRecord | None, why: SeedUnfit | Waiting) -> Outcome:
        """Say why nothing can be done yet, once; not before all that the stream holds has been told."""
        if isinstance(why, Waiting) and not self._told.is_complete:
            return Outcome("waiting")
        if isinstance(why, Waiting) and not why.is_refused:
            left = self._patience.left((told.namespace, told.name), (told.uid, told.generation, why.operation))
            if left > 0:
                return Outcome("waiting", left, why.problem)
        record = record or adopted(told)
        say = waiting if isinstance(why, Waiting) else seed_unfit
        patch = say(why.operation, record.last_operation, why.problem, now=self._clock.now())
        if patch is not None:
            self._keep(told, record, patch)
        return Outcome("postponed", UNFIT_SEED_RETRY.total_seconds(), why.problem)

    def _repeat(self, told: ShootTold, result: Document, *, outcome: str) -> Outcome:
        left = self._results.say_again(told, result)
        return Outcome("waiting", left) if left > 0 else Outcome(outcome, REPEAT_AFTER.total_seconds())

    async def _run_traced(self, told: ShootTold, record: ShootRecord, run: Run, *, resumed: bool) -> Outcome:
        shoot = (told.namespace, told.name)
        trace = self._told.traces.get(shoot)
        if trace is None:
            return await self._run(told, record, run, resumed=resumed)
        span = spans.operating(trace, shoot, self._seed_name, run)
        try:
            with tracing.within(span.traceparent):
                outcome = await self._run(told, record, run, resumed=resumed)
        except BaseException as error:
            span.end(failed=str(error) or type(error).__name__)
            raise
        span.end(failed=outcome.reason if outcome.name in {"error", "failed"} else "", outcome=outcome.name)
        if outcome.name in {"reconciled", "migrated", "deleted"}:
            self._told.trace_ended(shoot, trace)
        return outcome

    async def _run(self, told: ShootTold, record: ShootRecord, run: Run, *, resumed: bool) -> Outcome:
        if run.operation == "Delete":
            await self._states.release(told)
        patch = started(told, record, run, seed_name=self._seed_name, gardener=self._identity, now=self._clock.now())
        record = msgspec.structs.replace(
            record,
            run=run,
            has_workers=told.has_workers or record.has_workers if run.operation == "Delete" else told.has_workers,
            attempts=record.attempts if resumed else 0,
            retry_at=None,
            state=record.state if resumed else self._states.brought(told, record, run.operation),
        )
        record = self._keep(told, record, patch)
        result = await run_flow(
            self._backend,
            record,
            told,
            is_wanted=lambda: self._is_still_wanted(told, run),
            on_progress=lambda record, tasks: self._report_progress(told, record, tasks),
            hold=lambda record, step: self._hold(told, record, step),
        )
        if result.failures:
            return await self._fail(told, result)
        if result.held:
            return Outcome("held", SAVE_AGAIN_SECONDS, result.held)
        if not result.is_complete:
            return Outcome("stopped", 0.0, "something else is wanted")
        return await self._succeed(told, result.record, run)

    async def _hold(self, told: ShootTold, record: ShootRecord, step: str) -> str | None:
        """Why a step has to wait: nothing is taken down before the garden has what the next seed needs."""
        if step != SAVE_STATE or record.run is None:
            return None
        return await self._states.save(told, record.state, generation=record.run.generation)

    async def _succeed(self, told: ShootTold, record: ShootRecord, run: Run) -> Outcome:
        now = self._clock.now()
        patch = succeeded(run.operation, now=now)
        if run.operation in {"Migrate", "Delete"}:
            record = msgspec.structs.replace(record, attempts=0, retry_at=None, failed={})
            record = with_status(record, patch)
            self._backend.save(record)
            told = self._told.shoot((told.namespace, told.name)) or told
            result = result_of(told, record)
            self._results.say(told, patch | result, result)
            return Outcome("migrated" if record.has_left else "deleted", REPEAT_AFTER.total_seconds())
        problems = await self._backend.problems(told)
        patch |= cared(record.status, problems, has_workers=told.has_workers, now=now)
        record = msgspec.structs.replace(record, attempts=0, retry_at=None, failed={}, state={}, state_of_generation=0)
        self._keep(told, record, patch)
        return Outcome("reconciled", 0.0)

    async def _fail(self, told: ShootTold, result: FlowResult) -> Outcome:
        now = self._clock.now()
        patch = failed(result.record, result.failures, retry_duration=self._settings.retry_duration, now=now)
        attempts = result.record.attempts + 1
        wait = _BACKOFF.delay_seconds(attempts, random.random())
        record = msgspec.structs.replace(result.record, attempts=attempts, retry_at=now + timedelta(seconds=wait))
        self._keep(told, record, patch)
        reason = "; ".join(failure.message for failure in result.failures)
        await self._record_failure(told, patch["lastOperation"])
        if patch["lastOperation"]["state"] == "Failed":
            return Outcome("failed", None, reason)
        return Outcome("error", wait, reason)

    async def _record_failure(self, told: ShootTold, operation: Document) -> None:
        """Leave a Warning Event; it is news, so an outage of the bus may swallow it."""
        key = ObjectKey("shoot", told.namespace, told.name)
        reason = "DeleteError" if operation["type"] == "Delete" else "ReconcileError"
        try:
            await self._reporter.event(key, told.uid, kind="Warning", reason=reason, message=operation["description"])
        except Unavailable as error:
            _log.info("event.lost", shoot=str(key), reason=error.message)

    async def _take_down(
        self,
        shoot: ShootName,
        record: ShootRecord,
        operation: Literal["Delete", "Leave"],
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> Outcome:
        return await take_down(
            self._backend, shoot, record, operation, is_wanted=lambda: self._is_active() and is_wanted()
        )

    async def care(self, told: ShootTold, *, everything: bool) -> None:
        """Check how a shoot is and report what changed; with `everything`, its whole status in any case."""
        shoot = (told.namespace, told.name)
        problems = await self._backend.problems(told)
        record = self._backend.load(shoot)
        if record is None or record.uid != told.uid or told.status_seed != self._seed_name or not self._is_active():
            return
        if record.has_left:
            return
        patch: Document = {}
        if record.was_created and not record.is_torn_down and not record.is_leaving:
            patch = cared(record.status, problems, has_workers=record.has_workers, now=self._clock.now())
        if patch:
            record = with_status(record, patch)
            self._backend.save(record)
        if everything:
            whole = {"lastErrors": None, "retryCycleStartTime": None} | record.status
            if record.last_operation.get("state") == "Processing":  # the run in work says more than the record
                del whole["lastOperation"]
            self._report(told, whole)
        elif patch:
            self._report(told, patch)

    def _is_still_wanted(self, told: ShootTold, run: Run) -> bool:
        """Whether a run should start another step: nothing was said since that ends it."""
        now = self._told.shoot((told.namespace, told.name))
        return (
            self._is_active()
            and now is not None
            and now.uid == told.uid
            and is_still_wanted(run.operation, now, self._seed_name)
            and not self._fitness().is_stopped
        )

    def _report_progress(self, told: ShootTold, record: ShootRecord, tasks: Sequence[str]) -> None:
        patch = progressed(record, tasks, now=self._clock.now())
        period = self._settings.progress_report_period.total_seconds()
        self._reporter.status(ObjectKey("shoot", told.namespace, told.name), told.uid, patch, within_seconds=period)

    def _keep(self, told: ShootTold, record: ShootRecord, patch: Document) -> ShootRecord:
        """Take a patch into the record, store it, then report it."""
        record = with_status(record, patch)
        self._backend.save(record)
        self._report(told, patch)
        return record

    def _report(self, told: ShootTold, patch: Document) -> None:
        self._reporter.status(ObjectKey("shoot", told.namespace, told.name), told.uid, patch)

    def _jittered(self, reason: str, seconds: float) -> float:
        """Spread the syncs of many shoots that were settled together."""
        return seconds * (1 + _SYNC_JITTER * random.random()) if reason == "settled" else seconds
