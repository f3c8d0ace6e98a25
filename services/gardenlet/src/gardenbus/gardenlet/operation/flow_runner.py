"""Runs the flow of a shoot: starts each step as soon as its dependencies are done.

After a failure no step is started, and those in flight are awaited. A cancelled run loses nothing: the backend records
which steps are done. A step with an unmet precondition ends the run for now.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from gardenbus.common.errors import Transient
from gardenbus.gardenlet.backend.port import StepFailed
from gardenbus.gardenlet.backend.seed_backend import SeedBackend
from gardenbus.gardenlet.domain.failures import StepFailure
from gardenbus.gardenlet.domain.flow_graph import FlowStep
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_record import ShootName, ShootRecord
from gardenbus.gardenlet.tracing import traced_step

StepPrecondition = Callable[[ShootRecord, str], Awaitable[str | None]]
"""Reason why a step must not run yet, None when it may."""


class FlowResult(NamedTuple):
    """Result of a run: complete, with failures, `blocked` by a precondition, or (none of these) stopped as unwanted."""

    record: ShootRecord
    is_complete: bool
    failures: Sequence[StepFailure] = ()
    blocked: str = ""


class _PreconditionUnmet(Transient):
    """A step must not run yet."""


async def no_precondition(_record: ShootRecord, _step: str) -> None:
    """Allow every step."""


async def run_flow(
    backend: SeedBackend,
    record: ShootRecord,
    observed: ObservedShoot | None,
    *,
    is_wanted: Callable[[], bool],
    on_progress: Callable[[ShootRecord, Sequence[str]], None],
    precondition: StepPrecondition = no_precondition,
) -> FlowResult:
    """Run or resume the current run of `record`.

    `on_progress` receives the record and the tasks in flight whenever steps have ended. Raises StaleFencingToken.
    """
    assert record.run is not None
    shoot: ShootName = (record.namespace, record.name)
    flow = record.flow
    failures: list[StepFailure] = []
    blocked: list[str] = []
    running: dict[asyncio.Task[ShootRecord], FlowStep] = {}
    done: set[str] = set(record.run.done)
    try:
        while True:
            if not (failures or blocked) and is_wanted():
                for step in flow.ready(done, [each.name for each in running.values()]):
                    running[
                        asyncio.create_task(_perform(backend, shoot, step.name, observed, precondition), name=step.name)
                    ] = step
            if not running:
                break
            ended, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                _collect_result(task, running.pop(task), done=done, failures=failures, blocked=blocked)
            record = backend.load(shoot) or record
            if not (failures or blocked or flow.is_complete(done)):
                starting = flow.ready(done, [each.name for each in running.values()])
                on_progress(record, [step.task for step in (*running.values(), *starting)])
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    return FlowResult(record, flow.is_complete(done), tuple(failures), "; ".join(blocked))


def _collect_result(
    task: asyncio.Task[ShootRecord], step: FlowStep, *, done: set[str], failures: list[StepFailure], blocked: list[str]
) -> None:
    try:
        task.result()
    except StepFailed as error:
        failures.append(StepFailure(step.name, step.task, error.message, error.codes))
    except _PreconditionUnmet as error:
        blocked.append(error.message)
    else:
        done.add(step.name)


async def _perform(
    backend: SeedBackend, shoot: ShootName, step: str, observed: ObservedShoot | None, precondition: StepPrecondition
) -> ShootRecord:
    record = backend.load(shoot)
    reason = await precondition(record, step) if record is not None else None
    if reason is not None:
        raise _PreconditionUnmet(reason)
    return await traced_step(step, lambda: backend.perform(shoot, step, observed))
