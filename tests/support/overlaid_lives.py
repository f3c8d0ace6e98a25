"""Lives of a gardenlet's part for extension objects, each in a process of its own; SIGKILL ends it where it is told to.

`python -m tests.support.overlaid_lives` reads a `Life` from its standard input, and runs the operation from where the
lives before have come.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec

from gardenbus.common.api.document import Document
from gardenbus.gardenlet.backend.port import StaleFencingToken, StepRequest
from gardenbus.gardenlet.domain.flows import OperationType
from tests.support.kube_clusters import RealCluster
from tests.support.overlaid_seeds import MemoryGarden, overlaid_seed

ROOT = Path(__file__).parents[2]
KILLED, COMPLETE, FAILED, FENCED_OFF = -signal.SIGKILL, 0, 1, 3
"""Ends of a life, as exit codes."""


class Life(msgspec.Struct, kw_only=True):
    """One life. It is killed so long after `killed_in` has begun; steps that are not in `begun` wait for that."""

    directory: str
    kubeconfig: str
    garden: Sequence[Document]
    shoot: Document
    operation: OperationType
    token: int = 1
    killed_in: str = ""
    killed_after: float = 0.0
    begun: Sequence[str] = ()
    restored_from: Document | None = None


async def live(life: Life) -> int:
    """Run a life to its end; returns its exit code."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.overlaid_lives", stdin=asyncio.subprocess.PIPE, cwd=ROOT
    )
    try:
        await process.communicate(msgspec.json.encode(life))
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode is not None
    return process.returncode


async def _live(life: Life) -> int:
    cluster = cast("RealCluster", SimpleNamespace(kubeconfig=life.kubeconfig, client=None))
    garden = MemoryGarden(*life.garden)
    try:
        async with overlaid_seed(Path(life.directory), cluster, garden, token=life.token) as seed:
            maker: Any = seed.backend.maker
            maker.make = _ending(maker.make, life)
            result = await seed.run(life.shoot, life.operation, restored_from=life.restored_from, resumes=True)
            seed.backend.save(result.record)  # as a gardenlet does with each result
    except StaleFencingToken:
        return FENCED_OFF
    for failure in result.failures:
        sys.stderr.write(f"{failure.step}: {failure.message}\n")
    return COMPLETE if result.is_complete else FAILED


def _ending(make: Any, life: Life) -> Any:
    async def made(request: StepRequest) -> Document:
        if life.killed_in and request.step not in (*life.begun, life.killed_in):
            await asyncio.Event().wait()
        task = asyncio.ensure_future(make(request))
        if request.step == life.killed_in:
            await asyncio.wait([task], timeout=life.killed_after)
            os.kill(os.getpid(), signal.SIGKILL)
        return await task

    return made


if __name__ == "__main__":
    sys.exit(asyncio.run(_live(msgspec.json.decode(sys.stdin.buffer.read(), type=Life))))
