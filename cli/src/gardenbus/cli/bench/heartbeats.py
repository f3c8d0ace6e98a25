"""Heartbeats: many gardenlets renew their Leases; what watching them costs, and how soon a silent one is found."""

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from gardenbus.cli.bench.figures import Figures, histogram, latencies, middle
from gardenbus.cli.bench.loading import Landscape
from gardenbus.cli.bench.manifests import seed_name
from gardenbus.cli.bench.pipes import Span, counting, last_sequence, write_json
from gardenbus.cli.bench.results import Pair, Progress, Target, Task, compared, parameters
from gardenbus.cli.bench.rig import BenchFailed, Rig, a_rig
from gardenbus.cli.bench.scheduling import BARE, prepare
from gardenbus.common.ports.bus import Message
from gardenbus.common.resources.conditions import condition_status, conditions_of
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.lifecycle.decide.configuration import API_VERSION, KIND

RENEWAL_SECONDS = 2.0
TICK_SECONDS = 0.05
PERIODS = {10_000: 40, 1000: 10, 0: 6}
"""The monitor period in seconds, by how many seeds there are at least: Gardener's default at the size of the target."""

MOST_CORES = 0.5
RATE_OF_TARGET = 5000.0
SLACK_SECONDS = 2.0
"""How much later than its period a silence may be found."""

DEAD_SHARE = 0.002
LOOK_SECONDS = 0.05
BARE_SECONDS = 6.0
CONFIGURATION = "controller-manager.yaml"


class Gardenlets:
    """The generator: renews every seed's Lease once in two seconds, spread evenly, until it is told to stop."""

    def __init__(self, rig: Rig, seeds: Sequence[str]) -> None:
        self._rig = rig
        self._seeds = seeds
        self._silent: set[str] = set()
        self.last_heard_at: dict[str, float] = {}
        """Of the silenced: when their last renewal was stored (monotonic)."""

    def silence(self, seeds: Sequence[str]) -> None:
        """Let some be heard no more."""
        self._silent |= set(seeds)

    async def run(self) -> None:
        """Renew for ever."""
        next_seed, began = 0, time.monotonic()
        stored_at: dict[str, float] = {}
        while True:
            due = int((time.monotonic() - began) * len(self._seeds) / RENEWAL_SECONDS)
            turn = [self._seeds[number % len(self._seeds)] for number in range(next_seed, due)]
            next_seed = due
            speaking = [seed for seed in turn if seed not in self._silent]
            await self._rig.bus.publish_many([self._lease(seed) for seed in speaking])
            stored_at |= dict.fromkeys(speaking, time.monotonic())
            self.last_heard_at |= {seed: stored_at[seed] for seed in self._silent - self.last_heard_at.keys()}
            await asyncio.sleep(TICK_SECONDS)

    def _lease(self, seed: str) -> Message:
        lease: Document = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": seed, "namespace": "gardener-system-seed-lease"},
            "spec": {
                "holderIdentity": f"{seed}-0",
                "leaseDurationSeconds": 40,
                "renewTime": datetime.now(UTC),
            },
        }
        return Message(self._rig.subjects.lease(seed), msgspec.json.encode(lease))


async def measure(task: Task) -> Figures:
    """Lifecycle against a follower that only counts, under the same load, and the silence of a few seeds."""
    period = next(period for least, period in PERIODS.items() if task.size.seeds >= least)
    seeds = [seed_name(number) for number in range(task.size.seeds)]
    pairs: list[Pair] = []
    found_after: list[float] = []
    async with a_rig(task.durability) as rig:
        await prepare(rig, Landscape(task.size.seeds, 0), task.progress)
        _configure(rig, period)
        gardenlets = Gardenlets(rig, seeds)
        renewing = asyncio.create_task(gardenlets.run())
        dead_a_run = max(1, int(DEAD_SHARE * len(seeds)))
        for run in range(task.size.runs):
            dead = seeds[run * dead_a_run : (run + 1) * dead_a_run]
            span, found = await _watched(rig, gardenlets, dead, period, task.progress)
            found_after += found
            await _check_alive(rig, seeds[(run + 1) * dead_a_run :])
            pairs.append(Pair(span, await _bare(rig)))
            if renewing.done():
                renewing.result()
        renewing.cancel()
    return _figures(task, pairs, found_after, period)


def _configure(rig: Rig, period: int) -> None:
    write_json(
        rig.directory.config / CONFIGURATION,
        {"apiVersion": API_VERSION, "kind": KIND, "controllers": {"seed": {"monitorPeriod": f"{period}s"}}},
    )


async def _watched(
    rig: Rig, gardenlets: Gardenlets, dead: Sequence[str], period: int, progress: Progress
) -> tuple[Span, list[float]]:
    """Start a lifecycle, wait until it trusts its ears, silence some seeds: the span until all of them are found.

    Answers besides how long after the end of its period each of them was found, in seconds.
    """
    await rig.start("lifecycle", "--config", str(rig.directory.config / CONFIGURATION))
    for second in range(period + int(SLACK_SECONDS) + 1):
        progress("warming up", second, period + int(SLACK_SECONDS))
        await asyncio.sleep(1.0)
    gardenlets.silence(dead)
    before = await last_sequence(rig, "LEASES")
    async with counting(rig, 0) as span:
        began = time.monotonic()
        found = await _found_silent(rig, dead, began + 2 * period + 10 * SLACK_SECONDS)
        span.seconds = time.monotonic() - began
        span.count = await last_sequence(rig, "LEASES") - before
    await rig.stop("lifecycle")
    return span, [max(0.0, at - gardenlets.last_heard_at[seed] - period) for seed, at in found.items()]


async def _found_silent(rig: Rig, dead: Sequence[str], deadline: float) -> dict[str, float]:
    """When each of the dead was found to be silent (monotonic)."""
    found: dict[str, float] = {}
    while len(found) < len(dead):
        if time.monotonic() > deadline:
            raise BenchFailed(f"{len(dead) - len(found)} of {len(dead)} silent seeds were not found")
        await asyncio.sleep(LOOK_SECONDS)
        left = [seed for seed in dead if seed not in found]
        statuses = await _statuses(rig, left)
        at = time.monotonic()
        found |= {seed: at for seed, status in zip(left, statuses, strict=True) if status == "Unknown"}
    return found


async def _check_alive(rig: Rig, seeds: Sequence[str]) -> None:
    """Raise BenchFailed when one was found silent that was not."""
    wrong = [seed for seed, status in zip(seeds, await _statuses(rig, seeds), strict=True) if status != "True"]
    if wrong:
        raise BenchFailed(f"{len(wrong)} seeds were falsely found silent, {wrong[0]} among them")


async def _statuses(rig: Rig, seeds: Sequence[str]) -> list[str]:
    stored = await rig.store.get_many([ObjectKey("seed", "", seed) for seed in seeds])
    return [
        condition_status(conditions_of(each.document()), "GardenletReady") if each is not None else ""
        for each in stored
    ]


async def _bare(rig: Rig) -> Span:
    """The same Leases, followed and counted."""
    await rig.start("bare", "listen", module=BARE)
    await asyncio.sleep(RENEWAL_SECONDS)
    before = await last_sequence(rig, "LEASES")
    async with counting(rig, 0) as span:
        began = time.monotonic()
        await asyncio.sleep(BARE_SECONDS)
        span.seconds = time.monotonic() - began
        span.count = await last_sequence(rig, "LEASES") - before
    await rig.stop("bare")
    return span


def _figures(task: Task, pairs: Sequence[Pair], found_after: Sequence[float], period: int) -> Figures:
    own = middle(pair.product.cpu_s["lifecycle"] / pair.product.count for pair in pairs) or 0.0
    bare = middle(pair.bare.cpu_s["bare"] / pair.bare.count for pair in pairs) or 0.0
    target = f"≤ {MOST_CORES} core in lifecycle at 5,000/s, a dead one found within {period} s + {SLACK_SECONDS:g} s"
    figures = compared(
        task, pairs, Target(target), latency_of="from the end of a silent seed's period to its silence stored"
    )
    cores = own * RATE_OF_TARGET
    return msgspec.structs.replace(
        figures,
        unit="lease",
        ratio=round(bare / own, 3) if own else None,
        met=cores <= MOST_CORES and max(found_after) <= SLACK_SECONDS,
        latency_ms=latencies(found_after),
        bare_latency_ms={},
        histogram=histogram(found_after),
        values={
            "microseconds_a_lease": round(1e6 * own, 1),
            "cores_at_5000_per_s": round(cores, 3),
            "bare_cores_at_5000_per_s": round(bare * RATE_OF_TARGET, 3),
            "falsely_found": 0.0,
        },
        parameters=parameters(task, {"period_s": period, "renewal_s": RENEWAL_SECONDS}),
    )
