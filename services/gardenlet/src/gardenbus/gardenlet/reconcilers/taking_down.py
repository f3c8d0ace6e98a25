"""Takes down what is kept of a shoot that is no more here; nothing is reported of it."""

import random
from collections.abc import Callable
from typing import Literal

import msgspec

from gardenbus.common.machinery.backoff import Backoff
from gardenbus.gardenlet.backend.port import Backend, ShootName
from gardenbus.gardenlet.decide.record import Run, ShootRecord
from gardenbus.gardenlet.reconcilers.flow import run_flow
from gardenbus.gardenlet.reconcilers.outcomes import Outcome

_BACKOFF = Backoff()


async def take_down(
    backend: Backend,
    shoot: ShootName,
    record: ShootRecord,
    operation: Literal["Delete", "Leave"],
    *,
    is_wanted: Callable[[], bool],
) -> Outcome:
    """Take down what is kept of a shoot that is no more (or another seed's), and forget it: `torn-down`.

    `is_wanted` is asked before each step.
    """
    if not record.is_torn_down and not record.has_left:
        if record.run is None or record.run.operation != operation:
            number = record.run.number + 1 if record.run else 1
            record = msgspec.structs.replace(record, run=Run(operation=operation, generation=0, number=number))
            backend.save(record)
        result = await run_flow(backend, record, None, is_wanted=is_wanted, on_progress=lambda _record, _tasks: None)
        if result.failures:
            attempts = result.record.attempts + 1
            backend.save(msgspec.structs.replace(result.record, attempts=attempts))
            reason = "; ".join(failure.message for failure in result.failures)
            return Outcome("error", _BACKOFF.delay_seconds(attempts, random.random()), reason)
        if not result.is_complete:
            return Outcome("stopped", 0.0, "something else is wanted")
    backend.forget(shoot)
    return Outcome("torn-down")
