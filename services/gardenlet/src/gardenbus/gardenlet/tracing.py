"""Trace spans of a gardenlet; without a trace they cost one dict lookup.

gardenlet.claim ──► (its report, and the announcement that confirms it)
                        └─► gardenlet.<operation> ──┬─► step <name>      (each)
                                                    └─► (its reports)
"""

from collections.abc import Awaitable, Callable

from gardenbus.common.ports import tracing
from gardenbus.gardenlet.domain.shoot_record import Run, ShootName, ShootRecord


def claim_span(parent: str, shoot: ShootName, seed: str) -> tracing.Span:
    """Span of the claim of a shoot."""
    return tracing.begin("gardenlet.claim", parent, attributes=_attributes(shoot, seed))


def operation_span(parent: str, shoot: ShootName, seed: str, run: Run) -> tracing.Span:
    """Span of a run of a shoot's flow, new or resumed."""
    about = {**_attributes(shoot, seed), "gardenbus.run": run.number, "gardenbus.generation": run.generation}
    return tracing.begin(f"gardenlet.{run.operation.lower()}", parent, attributes=about)


async def traced_step(name: str, perform: Callable[[], Awaitable[ShootRecord]]) -> ShootRecord:
    """Perform a step as a span of the current run, if that is traced."""
    parent = tracing.current()
    if not parent:
        return await perform()
    return await tracing.traced(perform(), f"step {name}", parent, attributes={"gardenbus.step": name})


def _attributes(shoot: ShootName, seed: str) -> tracing.Attributes:
    return {"gardenbus.object": f"shoot.{shoot[0]}.{shoot[1]}", "gardenbus.seed": seed}
