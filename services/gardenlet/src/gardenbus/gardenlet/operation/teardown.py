"""Tears down what is left of a shoot that is no longer on this seed; nothing is reported."""

import random
from collections.abc import Callable
from typing import Literal

import msgspec

from gardenbus.common.controller.backoff import Backoff
from gardenbus.gardenlet.backend.seed_backend import SeedBackend
from gardenbus.gardenlet.domain.reconcile_result import ShootResult
from gardenbus.gardenlet.domain.shoot_record import Run, ShootName, ShootRecord
from gardenbus.gardenlet.operation.flow_runner import run_flow

_BACKOFF = Backoff()


async def tear_down(
    backend: SeedBackend,
    shoot: ShootName,
    record: ShootRecord,
    operation: Literal["Delete", "Leave"],
    *,
    is_wanted: Callable[[], bool],
) -> ShootResult:
    """Tear down the record of a deleted (or migrated) shoot, then forget it: result `torn-down`.

    `is_wanted` is checked before each step.
    """
    if not record.is_torn_down and not record.has_left:
        record = msgspec.structs.replace(record, has_extensions=backend.has_extensions)
        if record.run is None or record.run.operation != operation:
            number = record.run.number + 1 if record.run else 1
            record = msgspec.structs.replace(record, run=Run(operation=operation, generation=0, number=number))
            backend.save(record)
        result = await run_flow(backend, record, None, is_wanted=is_wanted, on_progress=lambda _record, _tasks: None)
        if result.failures:
            attempts = result.record.attempts + 1
            backend.save(msgspec.structs.replace(result.record, attempts=attempts))
            reason = "; ".join(failure.message for failure in result.failures)
            return ShootResult("error", _BACKOFF.delay_seconds(attempts, random.random()), reason)
        if not result.is_complete:
            return ShootResult("stopped", 0.0, "something else is wanted")
    backend.forget(shoot)
    return ShootResult("torn-down")
