"""Runs the flow of a shoot: starts each step as soon as those before it are done.

After a failure nothing new is started, and what is in work is awaited. A run that is cut loses nothing: the backend
knows which steps are done. A step may be held until others have done their part; the run then ends for now.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from gardenbus.common.errors import Transient
from gardenbus.gardenlet.backend.port import Backend, ShootName, StepFailed
from gardenbus.gardenlet.decide.failures import StepFailure
from gardenbus.gardenlet.decide.flows import shoot_flow
from gardenbus.gardenlet.decide.graph import Step
from gardenbus.gardenlet.decide.operations import ShootTold
from gardenbus.gardenlet.decide.record import ShootRecord
from gardenbus.gardenlet.reconcilers.spans import step_of

Hold = Callable[[ShootRecord, str], Awaitable[str | None]]
"""Asked before a step is carried out: why not yet, None when it may be."""


class FlowResult(NamedTuple):
    """How a run ended: complete, with failures, `held`, or (none of these) stopped as it is not wanted any more."""

    record: ShootRecord
    is_complete: bool
    failures: Sequence[StepFailure] = ()
    held: str = ""


class _Held(Transient):
    """A step cannot be carried out yet."""


async def hold_nothing(_record: ShootRecord, _step: str) -> None:
    """Carry every step out."""


async def run_flow(
    backend: Backend,
    record: ShootRecord,
    told: ShootTold | None,
    *,
    is_wanted: Callable[[], bool],
    on_progress: Callable[[ShootRecord, Sequence[str]], None],
    hold: Hold = hold_nothing,
) -> FlowResult:
    """Carry the current run of `record` out from where it stands.

    `on_progress` is called with the record and the tasks in work whenever steps have ended. Raises FencedOff.
    """
    assert record.run is not None
    shoot: ShootName = (record.namespace, record.name)
    flow = shoot_flow(record.run.operation, has_workers=record.has_workers)
    failures: list[StepFailure] = []
    held: list[str] = []
    running: dict[asyncio.Task[ShootRecord], Step] = {}
    done: set[str] = set(record.run.done)
    try:
        while True:
            if not (failures or held) and is_wanted():
                for step in flow.ready(done, [each.name for each in running.values()]):
                    running[asyncio.create_task(_perform(backend, shoot, step.name, told, hold), name=step.name)] = step
            if not running:
                break
            ended, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                _take_in(task, running.pop(task), done=done, failures=failures, held=held)
            record = backend.load(shoot) or record
            if not (failures or held or flow.is_complete(done)):
                starting = flow.ready(done, [each.name for each in running.values()])
                on_progress(record, [step.task for step in (*running.values(), *starting)])
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    return FlowResult(record, flow.is_complete(done), tuple(failures), "; ".join(held))


def _take_in(
    task: asyncio.Task[ShootRecord], step: Step, *, done: set[str], failures: list[StepFailure], held: list[str]
) -> None:
    try:
        task.result()
    except StepFailed as error:
        failures.append(StepFailure(step.name, step.task, error.message, error.codes))
    except _Held as error:
        held.append(error.message)
    else:
        done.add(step.name)


async def _perform(backend: Backend, shoot: ShootName, step: str, told: ShootTold | None, hold: Hold) -> ShootRecord:
    record = backend.load(shoot)
    reason = await hold(record, step) if record is not None else None
    if reason is not None:
        raise _Held(reason)
    return await step_of(step, lambda: backend.perform(shoot, step, told))
