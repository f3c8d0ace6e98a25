"""Identities: what permissions cost, and TLS besides, beside a landscape where whoever reaches NATS may act as anybody.

Three rigs stand at the same time and are measured by turns, each thing on all three before the next:

| measured   | from … to                                                                                              |
|------------|--------------------------------------------------------------------------------------------------------|
| bus        | Shoots published in batches, and taken from a work queue meanwhile: two clients and NATS, nothing else |
| intake     | requests that were held back, until the last is stored and queued                                      |
| scheduling | these shoots, held back in the queue, until the last binding is announced                              |
| stream     | requests sent while all services work, until the last binding is announced                             |

In the end, with TLS: as many gardenlets as there are seeds connect, one after another, each by its certificate through
the auth callout; then NATS is restarted, and they come back all at once.
"""

import asyncio
import resource
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Literal, NamedTuple, get_args

import msgspec

from gardenbus.bench.bare.services import SCHEDULING_CONSUMER
from gardenbus.bench.comparison import MeasuredPair, Measurement, ScenarioTarget, ScenarioTask, compared, parameters
from gardenbus.bench.harness.bus import BusMeasurer
from gardenbus.bench.harness.identities import gardenlet_credentials
from gardenbus.bench.harness.loading import BenchLandscape, StoredShoot
from gardenbus.bench.harness.measurement import pause_consumer
from gardenbus.bench.harness.retries import BenchFailed
from gardenbus.bench.harness.rig import NatsAccess, Rig, a_rig
from gardenbus.bench.manifests.shoots import seed_name
from gardenbus.bench.scenarios.apply import send_through, take_in
from gardenbus.bench.scenarios.scheduling import ShootBatch, bind_queued, prepare, start_scheduler
from gardenbus.bench.stats import ScenarioStats, latencies, median_of
from gardenbus.common.adapters.nats.connection import Connection

Way = Literal["bus", "intake", "scheduling", "stream"]

LEAST: Mapping[tuple[NatsAccess, Way], float] = {
    **{("permissions", way): 0.9 for way in get_args(Way)},
    ("tls", "bus"): 0.7,
    ("tls", "scheduling"): 0.85,
}
"""The least part of the rate without identities."""

MOST_CONNECT_MS = 10.0
BACK_WITHIN_SECONDS = 60.0
AWAIT_BACK_SECONDS = 300.0
POLL_SECONDS = 0.05

IdentityRun = dict[Way, Measurement]


class Connecting(NamedTuple):
    """Seconds that gardenlets took to connect one after another, and until all were back after a restart."""

    each: Sequence[float]
    back: float


async def measure(task: ScenarioTask) -> ScenarioStats:
    """All by turns, then the connections."""
    runs: dict[NatsAccess, list[IdentityRun]] = {access: [] for access in get_args(NatsAccess)}
    async with AsyncExitStack() as stack:
        rigs: dict[NatsAccess, Rig] = {}
        for access in runs:
            rigs[access] = rig = await stack.enter_async_context(a_rig(task.durability, access=access))
            await prepare(rig, BenchLandscape(task.size.seeds, task.size.placed), task.progress)
            if access != "insecure":
                await rig.start("identity")
        buses = {access: await BusMeasurer.on(rig) for access, rig in rigs.items()}
        for run in range(task.size.runs):
            for access in _turned(rigs, run):
                runs[access].append({"bus": await buses[access].measure(task.size.shoots)})
        for rig in rigs.values():
            await rig.start("apiserver")
            await start_scheduler(rig)  # it makes the consumer, which is paused before it is needed
            await rig.stop("scheduler")
        for run in range(task.size.runs):
            task.progress("runs", run, task.size.runs)
            await _by_turns(task, rigs, run, {access: own[run] for access, own in runs.items()})
        task.progress("runs", task.size.runs, task.size.runs)
        connecting = await _connect(rigs["tls"], task)
    return _stats(task, runs, connecting)


async def _by_turns(
    task: ScenarioTask, rigs: Mapping[NatsAccess, Rig], run: int, measured: Mapping[NatsAccess, IdentityRun]
) -> None:
    """Measure the services on each rig; `measured` receives it.

    No scheduler runs while shoots are taken in: by the apiserver's hints it would bind what shall be in the queue.
    """
    taken_in: dict[NatsAccess, Sequence[StoredShoot]] = {}
    count, progress = task.size.shoots, task.progress
    for access in _turned(rigs, run):
        await pause_consumer(rigs[access], "QUEUES", SCHEDULING_CONSUMER)
        taken_in[access], measured[access]["intake"] = await take_in(
            rigs[access], ShootBatch(f"i{run}", count), progress, _nothing_to_start
        )
    for rig in rigs.values():
        await start_scheduler(rig)
    for access in _turned(rigs, run + 1):
        measured[access]["scheduling"] = await bind_queued(rigs[access], taken_in[access])
    for access in _turned(rigs, run + 2):
        measured[access]["stream"] = await send_through(rigs[access], ShootBatch(f"s{run}", count), progress)
    for rig in rigs.values():
        await rig.stop("scheduler")


def _turned(rigs: Mapping[NatsAccess, Rig], run: int) -> Sequence[NatsAccess]:
    """The rigs, another one first in each run."""
    order = list(rigs)
    turn = run % len(order)
    return order[turn:] + order[:turn]


async def _nothing_to_start() -> None:
    pass


async def _connect(rig: Rig, task: ScenarioTask) -> Connecting:
    seeds = [seed_name(number) for number in range(task.size.seeds)]
    _allow_sockets(len(seeds))
    connections, took = list[Connection](), list[float]()
    try:
        for number, credentials in enumerate(gardenlet_credentials(rig.directory.identity, seeds)):
            task.progress("gardenlets", number + 1, len(seeds))
            connection = Connection()
            connections.append(connection)
            began = time.monotonic()
            await connection.open(
                rig.addresses.nats_url,
                f"gardenlet-{number}",
                credentials=credentials,
                on_reconnect=lambda: None,
                fails_unauthorized=True,
            )
            took.append(time.monotonic() - began)
        return Connecting(took, await _come_back(rig, connections))
    finally:
        await asyncio.gather(*(connection.close() for connection in connections))


async def _come_back(rig: Rig, connections: Sequence[Connection]) -> float:
    """Restart NATS; returns the seconds from its end until all are connected to the new one."""
    sessions = [connection.connected_at for connection in connections]
    began = time.monotonic()
    await rig.restart("nats")
    while True:
        back = sum(
            connection.is_connected and connection.connected_at > before
            for connection, before in zip(connections, sessions, strict=True)
        )
        at = time.monotonic()
        if back == len(connections):
            return at - began
        if at - began > AWAIT_BACK_SECONDS:
            raise BenchFailed(f"{len(connections) - back} of {len(connections)} gardenlets did not come back")
        await asyncio.sleep(POLL_SECONDS)


def _allow_sockets(count: int) -> None:
    """Raise the limit of this process' open files, as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = soft + 2 * count
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def _stats(
    task: ScenarioTask, runs: Mapping[NatsAccess, Sequence[IdentityRun]], connecting: Connecting
) -> ScenarioStats:
    insecure, secured = runs["insecure"], get_args(NatsAccess)[1:]
    ratios = {(access, way): _ratio(runs[access], insecure, way) for access in secured for way in get_args(Way)}
    pairs = [
        MeasuredPair(subject["scheduling"], reference["scheduling"])
        for subject, reference in zip(runs["tls"], insecure, strict=True)
    ]
    target = (
        "of the rate without: permissions ≥ 0.9, TLS ≥ 0.7 of the bus and ≥ 0.85 of scheduling; "
        f"connected in ≤ {MOST_CONNECT_MS:g} ms, back within {BACK_WITHIN_SECONDS:g} s"
    )
    stats = compared(
        task,
        pairs,
        ScenarioTarget(target),
        latency_of="from a gardenlet's socket to its being let in, one after another",
    )
    connect_ms = latencies(connecting.each)
    met = (
        all(ratios[each].rate >= least for each, least in LEAST.items())
        and connect_ms["p50"] <= MOST_CONNECT_MS
        and connecting.back <= BACK_WITHIN_SECONDS
    )
    return msgspec.structs.replace(
        stats,
        met=met,
        latency_ms=connect_ms,
        bare_latency_ms={},
        histogram=(),
        values={
            **{f"{access}_of_{way}": ratio.rate for (access, way), ratio in ratios.items()},
            **{f"{access}_of_{way}_by_cpu": ratio.cpu for (access, way), ratio in ratios.items()},
            "gardenlets": len(connecting.each),
            "all_back_s": round(connecting.back, 1),
        },
        parameters=parameters(task),
    )


class _Ratio(NamedTuple):
    """Rates, and CPU seconds of all processes the other way round: hardly moved by others at work."""

    rate: float
    cpu: float


def _ratio(subjects: Sequence[IdentityRun], references: Sequence[IdentityRun], way: Way) -> _Ratio:
    pairs = [(subject[way], reference[way]) for subject, reference in zip(subjects, references, strict=True)]
    rates = (subject.rate / reference.rate for subject, reference in pairs)
    costs = (sum(reference.cpu_s.values()) / (sum(subject.cpu_s.values()) or 1.0) for subject, reference in pairs)
    return _Ratio(round(median_of(rates) or 0.0, 3), round(median_of(costs) or 0.0, 3))
