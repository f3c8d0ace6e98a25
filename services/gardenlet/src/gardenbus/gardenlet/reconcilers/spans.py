"""What a gardenlet does as a part of traces; without one it costs a look into an empty dict.

gardenlet.claim ──► (its report, and the announcement that confirms it)
                        └─► gardenlet.<operation> ──┬─► step <name>      (each)
                                                    └─► (its reports)
"""

from collections.abc import Awaitable, Callable

from gardenbus.common.ports import tracing
from gardenbus.gardenlet.backend.port import ShootName
from gardenbus.gardenlet.decide.record import Run, ShootRecord


def claiming(parent: str, shoot: ShootName, seed: str) -> tracing.Span:
    """A shoot is claimed."""
    return tracing.begin("gardenlet.claim", parent, attributes=_about(shoot, seed))


def operating(parent: str, shoot: ShootName, seed: str, run: Run) -> tracing.Span:
    """A run of a shoot's flow begins, or goes on."""
    about = {**_about(shoot, seed), "gardenbus.run": run.number, "gardenbus.generation": run.generation}
    return tracing.begin(f"gardenlet.{run.operation.lower()}", parent, attributes=about)


async def step_of(name: str, perform: Callable[[], Awaitable[ShootRecord]]) -> ShootRecord:
    """Perform a step, as a span of the run that it belongs to, where that is traced."""
    parent = tracing.current()
    if not parent:
        return await perform()
    return await tracing.traced(perform(), f"step {name}", parent, attributes={"gardenbus.step": name})


def _about(shoot: ShootName, seed: str) -> tracing.Attributes:
    return {"gardenbus.object": f"shoot.{shoot[0]}.{shoot[1]}", "gardenbus.seed": seed}
