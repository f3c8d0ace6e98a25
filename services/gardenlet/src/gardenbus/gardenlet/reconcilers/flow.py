"""Runs the flow of a shoot: starts each step as soon as those before it are done.

After a failure nothing new is started, and what is in work is awaited. A run that is cut loses nothing: the backend
knows which steps are done.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from gardenbus.gardenlet.backend.port import Backend, ShootName, StepFailed
from gardenbus.gardenlet.decide.failures import StepFailure
from gardenbus.gardenlet.decide.flows import shoot_flow
from gardenbus.gardenlet.decide.graph import Step
from gardenbus.gardenlet.decide.operations import ShootTold
from gardenbus.gardenlet.decide.record import ShootRecord


class FlowResult(NamedTuple):
    """How a run ended: complete, with failures, or (neither) stopped because it is not wanted any more."""

    record: ShootRecord
    is_complete: bool
    failures: Sequence[StepFailure] = ()


async def run_flow(
    backend: Backend,
    record: ShootRecord,
    told: ShootTold | None,
    *,
    is_wanted: Callable[[], bool],
    on_progress: Callable[[ShootRecord, Sequence[str]], None],
) -> FlowResult:
    """Carry the current run of `record` out from where it stands.

    `on_progress` is called with the record and the tasks in work whenever steps have ended. Raises FencedOff.
    """
    assert record.run is not None
    shoot: ShootName = (record.namespace, record.name)
    flow = shoot_flow(record.run.operation, has_workers=record.has_workers)
    failures: list[StepFailure] = []
    running: dict[asyncio.Task[ShootRecord], Step] = {}
    done: set[str] = set(record.run.done)
    try:
        while True:
            if not failures and is_wanted():
                for step in flow.ready(done, [each.name for each in running.values()]):
                    running[asyncio.create_task(backend.perform(shoot, step.name, told), name=step.name)] = step
            if not running:
                break
            ended, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                step = running.pop(task)
                try:
                    task.result()
                except StepFailed as error:
                    failures.append(StepFailure(step.name, step.task, error.message, error.codes))
                else:
                    done.add(step.name)
            record = backend.load(shoot) or record
            if not failures and not flow.is_complete(done):
                starting = flow.ready(done, [each.name for each in running.values()])
                on_progress(record, [step.task for step in (*running.values(), *starting)])
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    return FlowResult(record, flow.is_complete(done), tuple(failures))
