"""A landscape at rest, as `up` starts it: one seed, three shoots that are created, nothing to do for half a minute."""

import asyncio
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from gardenbus.bench.guard import sampler
from gardenbus.bench.guard.assessment import REST_UNIT
from gardenbus.bench.guard.profiles import TimeSpan, by_samples, sampled
from gardenbus.bench.guard.readings import ScenarioReading, TurnReading
from gardenbus.bench.guard.yardsticks import YardstickRunner, yardsticks
from gardenbus.bench.harness.commands import run_command
from gardenbus.bench.harness.process_costs import ProcessCost, core_use, cost_of, memory_mb, share_of_others
from gardenbus.bench.harness.retries import BenchFailed
from gardenbus.bench.manifests.shoots import NAMESPACE, basics, names, seed, shoot
from gardenbus.cli.local.directory import LandscapeDirectory, LandscapeFile
from gardenbus.common.api.document import Document

REST = "at rest"
SHOOTS = 3
SECONDS = 30
QUIET_SECONDS = 5.0
"""Time after the last shoot was created, for what follows of it."""

CREATED_WITHIN = "240s"
COMMAND_SECONDS = 300.0
"""That ends a hang of a command, and nothing else."""

SUPERVISOR = "up"


async def measure_rest(directory: Path, samples: Path) -> ScenarioReading:
    """Start a landscape, let it come to rest, read what its processes take, and stop it. Raises BenchFailed."""
    await _command("up", "--dir", str(directory), "--detach", "-f", str(_manifests(directory.parent)))
    try:
        wanted = [f"shoot/{name}" for name in names("rest", SHOOTS)]
        await _command(
            *(
                "wait",
                *wanted,
                "-n",
                NAMESPACE,
                "--for",
                "reconciled",
                "--timeout",
                CREATED_WITHIN,
                "--dir",
                str(directory),
            )
        )
        await asyncio.sleep(QUIET_SECONDS)
        async with yardsticks(None) as runner:
            turn, window, pids = await _at_rest(directory, runner)
    finally:
        await _command("down", "--dir", str(directory))
    reading = ScenarioReading(scenario=REST, unit=REST_UNIT, turns=[turn])
    functions: dict[str, Mapping[str, float]] = {}
    for name, pid in pids.items():
        if (file := sampler.read(samples, pid)) is not None:
            counted = sampled(file.functions, file.samples, [window])
            functions[name] = by_samples(counted, reading.cpu(name).ratio)
    return msgspec.structs.replace(reading, functions=functions)


async def _at_rest(directory: Path, runner: YardstickRunner) -> tuple[TurnReading, TimeSpan, Mapping[str, int]]:
    before = await runner.read()
    pids = _pids(directory)
    own = (pids[SUPERVISOR], os.getpid())
    try:
        used = core_use(own)
        began_at, began = time.monotonic(), _costs(pids)
        await asyncio.sleep(SECONDS)
        ended = _costs(pids)
        window = TimeSpan(began_at, time.monotonic())
        others = share_of_others(used, core_use(own))
        memory = {name: memory_mb(pid) for name, pid in pids.items()}
    except ProcessLookupError as error:
        raise BenchFailed(f"a process of the landscape at rest died: {error}") from error
    if _pids(directory) != pids:
        raise BenchFailed("a process of the landscape at rest died, and was started again")
    turn = TurnReading(
        units=SECONDS,
        seconds=window.ended_at - began_at,
        cpu_s={name: _taken(began[name], ended[name]) for name in pids},
        before=before,
        after=await runner.read(),
        memory_mb=memory,
        others=others,
        wakeups={name: float(ended[name].wakeups - began[name].wakeups) for name in pids},
    )
    return turn, window, pids


def _costs(pids: Mapping[str, int]) -> Mapping[str, ProcessCost]:
    """Costs of each process by itself: the services are children of the supervisor."""
    listed = frozenset(pids.values())
    return {name: cost_of(pid, listed) for name, pid in pids.items()}


def _taken(began: ProcessCost, ended: ProcessCost) -> float:
    return ended.cpu_s - began.cpu_s


def _pids(directory: Path) -> Mapping[str, int]:
    """Processes of the landscape, its supervisor included. Raises BenchFailed when one is down."""
    landscape: LandscapeFile | None = LandscapeDirectory(directory).read()
    if landscape is None or landscape.supervisor_pid is None:
        raise BenchFailed(f"the landscape at rest does not run (logs: {LandscapeDirectory(directory).logs})")
    if down := [service.name for service in landscape.services if service.pid is None]:
        raise BenchFailed(f"{', '.join(down)} of the landscape at rest is down")
    pids = {service.name: service.pid for service in landscape.services if service.pid is not None}
    return {SUPERVISOR: landscape.supervisor_pid, **pids}


async def _command(*arguments: str) -> None:
    """Run a command of ours. Raises BenchFailed when it fails."""
    await run_command((sys.executable, "-m", "gardenbus.cli.main", *arguments), limit=COMMAND_SECONDS)


def _manifests(directory: Path) -> Path:
    """A file with one gardenlet, three shoots, and what they need."""
    documents: Sequence[Document] = [
        *basics("uniform"),
        _gardenlet(),
        *(shoot(name, number, "uniform") for number, name in enumerate(names("rest", SHOOTS))),
    ]
    file = directory / "rest.yaml"
    file.write_bytes(b"\n---\n".join(msgspec.json.encode(each) for each in documents))  # JSON is YAML
    return file


def _gardenlet() -> Document:
    spec = seed(0, "uniform")["spec"]
    return {
        "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1",
        "kind": "GardenletConfiguration",
        "resources": {"capacity": {"shoots": 20}},
        "backend": {"type": "local", "stepSeconds": 0.05},
        "seedConfig": {
            "metadata": {"name": "rest"},
            "spec": {name: spec[name] for name in ("provider", "networks", "settings")},
        },
    }
