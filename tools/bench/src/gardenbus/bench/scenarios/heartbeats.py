"""Heartbeats: many gardenlets renew their Leases; what watching them costs, and how soon a silent one is found."""

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

import msgspec

from gardenbus.bench.comparison import (
    MeasuredPair,
    Measurement,
    ReportProgress,
    ScenarioTarget,
    ScenarioTask,
    compared,
    parameters,
)
from gardenbus.bench.harness.loading import BenchLandscape
from gardenbus.bench.harness.measurement import last_sequence, measuring, write_json
from gardenbus.bench.harness.retries import BenchFailed
from gardenbus.bench.harness.rig import Rig, a_rig
from gardenbus.bench.manifests.shoots import seed_name
from gardenbus.bench.scenarios.scheduling import BARE, prepare
from gardenbus.bench.stats import ScenarioStats, histogram, latencies, median_of
from gardenbus.common.api.conditions import condition_status, conditions_of
from gardenbus.common.api.configuration.controller_manager import API_VERSION, KIND
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.bus import Message

RENEWAL_SECONDS = 2.0
TICK_SECONDS = 0.05
PERIODS = {10_000: 40, 1000: 10, 0: 6}
"""The monitor period in seconds, by how many seeds there are at least: Gardener's default at the size of the target."""

MOST_CORES = 0.5
RATE_OF_TARGET = 5000.0
SLACK_SECONDS = 2.0
"""Longest delay after its period with which a silence is found."""

DEAD_SHARE = 0.002
POLL_SECONDS = 0.05
BARE_SECONDS = 6.0
CONFIGURATION = "controller-manager.yaml"


class Gardenlets:
    """The generator: renews every seed's Lease once a period, spread evenly, until it is stopped."""

    def __init__(self, rig: Rig, seeds: Sequence[str], renewal_seconds: float = RENEWAL_SECONDS) -> None:
        self._rig = rig
        self._seeds = seeds
        self._renewal_seconds = renewal_seconds
        self._silent: set[str] = set()
        self.last_renewed_at: dict[str, float] = {}
        """Of the silenced: when their last renewal was stored (monotonic)."""

    def silence(self, seeds: Sequence[str]) -> None:
        """Stop the heartbeats of some."""
        self._silent |= set(seeds)

    async def run(self) -> None:
        """Renew for ever."""
        next_seed, began = 0, time.monotonic()
        stored_at: dict[str, float] = {}
        while True:
            due = int((time.monotonic() - began) * len(self._seeds) / self._renewal_seconds)
            due_seeds = [self._seeds[number % len(self._seeds)] for number in range(next_seed, due)]
            next_seed = due
            renewing_seeds = [seed for seed in due_seeds if seed not in self._silent]
            leases = [self._lease(seed) for seed in renewing_seeds]
            await self._rig.retries.repeat(partial(self._rig.bus.publish_many, leases), "Leases")
            stored_at |= dict.fromkeys(renewing_seeds, time.monotonic())
            self.last_renewed_at |= {seed: stored_at[seed] for seed in self._silent - self.last_renewed_at.keys()}
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


async def measure(task: ScenarioTask) -> ScenarioStats:
    """Lifecycle against a follower that only counts, under the same load, and the silence of a few seeds."""
    period = next(period for least, period in PERIODS.items() if task.size.seeds >= least)
    seeds = [seed_name(number) for number in range(task.size.seeds)]
    pairs: list[MeasuredPair] = []
    detected_after: list[float] = []
    async with a_rig(task.durability) as rig:
        await prepare(rig, BenchLandscape(task.size.seeds, 0), task.progress)
        _configure(rig, period)
        gardenlets = Gardenlets(rig, seeds)
        renewing = asyncio.create_task(gardenlets.run())
        dead_a_run = max(1, int(DEAD_SHARE * len(seeds)))
        for run in range(task.size.runs):
            dead = seeds[run * dead_a_run : (run + 1) * dead_a_run]
            measurement, found = await _watched(rig, gardenlets, dead, period, task.progress)
            detected_after += found
            await _check_alive(rig, seeds[(run + 1) * dead_a_run :])
            pairs.append(MeasuredPair(measurement, await _bare(rig)))
            if renewing.done():
                renewing.result()
        renewing.cancel()
    return _stats(task, pairs, detected_after, period)


def _configure(rig: Rig, period: int) -> None:
    write_json(
        rig.directory.config / CONFIGURATION,
        {"apiVersion": API_VERSION, "kind": KIND, "controllers": {"seed": {"monitorPeriod": f"{period}s"}}},
    )


async def _watched(
    rig: Rig, gardenlets: Gardenlets, dead: Sequence[str], period: int, progress: ReportProgress
) -> tuple[Measurement, list[float]]:
    """Start a lifecycle, wait until it trusts its ears, silence some seeds: the span until all of them are found.

    Returns besides how long after the end of its period each of them was found, in seconds.
    """
    await rig.start("lifecycle", "--config", str(rig.directory.config / CONFIGURATION))
    for second in range(period + int(SLACK_SECONDS) + 1):
        progress("warming up", second, period + int(SLACK_SECONDS))
        await asyncio.sleep(1.0)
    gardenlets.silence(dead)
    before = await last_sequence(rig, "LEASES")
    async with measuring(rig, 0) as measurement:
        began = time.monotonic()
        found = await _found_silent(rig, dead, began + 2 * period + 10 * SLACK_SECONDS)
        measurement.seconds = time.monotonic() - began
        measurement.count = await last_sequence(rig, "LEASES") - before
    await rig.stop("lifecycle")
    return measurement, [max(0.0, at - gardenlets.last_renewed_at[seed] - period) for seed, at in found.items()]


async def _found_silent(rig: Rig, dead: Sequence[str], deadline: float) -> dict[str, float]:
    """Time when each of the dead was found to be silent (monotonic)."""
    found: dict[str, float] = {}
    while len(found) < len(dead):
        if time.monotonic() > deadline:
            raise BenchFailed(f"{len(dead) - len(found)} of {len(dead)} silent seeds were not found")
        await asyncio.sleep(POLL_SECONDS)
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


async def _bare(rig: Rig) -> Measurement:
    """The same Leases, followed and counted."""
    await rig.start("bare", "listen", module=BARE)
    await asyncio.sleep(RENEWAL_SECONDS)
    before = await last_sequence(rig, "LEASES")
    async with measuring(rig, 0) as measurement:
        began = time.monotonic()
        await asyncio.sleep(BARE_SECONDS)
        measurement.seconds = time.monotonic() - began
        measurement.count = await last_sequence(rig, "LEASES") - before
    await rig.stop("bare")
    return measurement


def _stats(
    task: ScenarioTask, pairs: Sequence[MeasuredPair], detected_after: Sequence[float], period: int
) -> ScenarioStats:
    own = median_of(pair.product.cpu_s["lifecycle"] / pair.product.count for pair in pairs) or 0.0
    bare = median_of(pair.bare.cpu_s["bare"] / pair.bare.count for pair in pairs) or 0.0
    target = f"≤ {MOST_CORES} core in lifecycle at 5,000/s, a dead one found within {period} s + {SLACK_SECONDS:g} s"
    stats = compared(
        task, pairs, ScenarioTarget(target), latency_of="from the end of a silent seed's period to its silence stored"
    )
    cores = own * RATE_OF_TARGET
    return msgspec.structs.replace(
        stats,
        unit="lease",
        ratio=round(bare / own, 3) if own else None,
        met=cores <= MOST_CORES and max(detected_after) <= SLACK_SECONDS,
        latency_ms=latencies(detected_after),
        bare_latency_ms={},
        histogram=histogram(detected_after),
        values={
            "microseconds_a_lease": round(1e6 * own, 1),
            "cores_at_5000_per_s": round(cores, 3),
            "bare_cores_at_5000_per_s": round(bare * RATE_OF_TARGET, 3),
            "falsely_found": 0.0,
        },
        parameters=parameters(task, {"period_s": period, "renewal_s": RENEWAL_SECONDS}),
    )
