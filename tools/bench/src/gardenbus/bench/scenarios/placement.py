"""Placements: from the first work item fetched to the last binding announced; and those that a label concerns.

Snapshots of policies and resources are there before. What rolls out, and what reports on it, is held back: its work is
enqueued, as always, and waits. Each measurement has servers of its own, so that each finds the same.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from gardenbus.bench.bare.placement import CLUSTERS_VARIABLE
from gardenbus.bench.comparison import (
    Measurement,
    ReportProgress,
    ScenarioSize,
    ScenarioTarget,
    ScenarioTask,
    alternated,
    compared,
    parameters,
)
from gardenbus.bench.harness.loading import announced, create, opened
from gardenbus.bench.harness.measurement import (
    SAMPLE_SECONDS,
    FilteredTarget,
    jetstream_request,
    measure_released,
    pause_consumer,
    write_json,
)
from gardenbus.bench.harness.retries import BenchFailed
from gardenbus.bench.harness.rig import Rig, a_rig
from gardenbus.bench.manifests.fleet import (
    CLUSTERS_WANTED,
    LEAST_CLUSTERS,
    RING_LABEL,
    ROLE,
    PlacementCase,
    bindings_expected,
    cluster_name,
    clusters,
    placement,
    placement_cases,
    region_of,
    ring_of,
    rings,
    tier_of,
    tier_wanted,
)
from gardenbus.bench.stats import ScenarioStats
from gardenbus.common.api.conditions import TRUE, condition_status, conditions_of
from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.fleet.placement_parts import of
from gardenbus.common.api.fleet.placements import CLUSTER_KIND, PARENT_LABEL
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.clock import timestamp
from gardenbus.embedded.durability import Durability
from gardenbus.placement.app import ROLLOUT, SCHEDULING, SNAPSHOTS, STATUS, WORKS
from gardenbus.placement.domain.scheduling_status import CONDITION

BARE = "gardenbus.bench.bare.placement"
PARTS = of(CLUSTER_KIND)
AFTERWARDS = (STATUS, ROLLOUT, WORKS)
"""The queues of what follows on a decision."""

HEARTBEAT_AHEAD = timedelta(days=1)
"""Heartbeats lie so far ahead: nothing goes stale while it is measured."""

TIMEOUT_SECONDS = 300.0
POLL_SECONDS = 0.1
QUIET_SECONDS = 1.5
LEAST_RATIO = 0.6


class BenchFleet(NamedTuple):
    """Member clusters, and the placements that wait for them."""

    clusters: int
    cases: Sequence[PlacementCase]

    @property
    def bindings(self) -> int:
        """Number of bindings once all are placed."""
        return sum(bindings_expected(one, self.clusters) for one in self.cases)


def fleet_of(size: ScenarioSize) -> BenchFleet:
    """The fleet of a size: its seeds are clusters, its shoots placements of all sorts."""
    return BenchFleet(size.seeds, placement_cases(size.shoots))


Landed = Mapping[str, Sequence[str]]
"""Placement name to the names of the clusters it has bindings on."""


async def measure(task: ScenarioTask) -> ScenarioStats:
    """Product against bare pipe; after each of the product's runs one cluster changes its ring."""
    if task.size.seeds < LEAST_CLUSTERS:
        raise BenchFailed(f"it takes {LEAST_CLUSTERS} clusters at least (--seeds)")
    fleet = fleet_of(task.size)
    attempts: list[float] = []
    concerned: list[float] = []

    async def product(_: int) -> Measurement:
        async with prepared(fleet, task.durability, task.progress) as rig:
            measurement = await place_queued(rig, fleet)
            before = await check_placed(rig, fleet)
            attempts.append(await _attempts_after_label_change(rig))
            concerned.append(len(await _check_moved(rig, fleet, before)))
            return measurement

    async def bare(_: int) -> Measurement:
        async with prepared(fleet, task.durability, task.progress) as rig:
            return await place_bare_on(rig, fleet)

    pairs = await alternated(task, product, bare)
    stats = compared(
        task,
        pairs,
        ScenarioTarget("≥ 0.6 of the bare pipe, and a label looks at none it cannot concern", LEAST_RATIO),
        latency_of="from the first fetch to the binding announced, all queued at once",
    )
    values = {
        "looks_after_a_label_change": max(attempts),
        "placements_it_concerns": max(concerned),
        "looks_in_vain": max(max(0.0, seen - due) for seen, due in zip(attempts, concerned, strict=True)),
    }
    return msgspec.structs.replace(
        stats,
        unit="binding",
        met=bool(stats.met) and not values["looks_in_vain"],
        values={**stats.values, **values},
        parameters=parameters(task, {"clusters": fleet.clusters, "placements": len(fleet.cases)}),
    )


@asynccontextmanager
async def prepared(fleet: BenchFleet, durability: Durability, progress: ReportProgress) -> AsyncGenerator[Rig]:
    """A fleet, the service, and placements with their snapshots, all of them queued to be scheduled."""
    async with a_rig(durability) as rig:
        await rig.start("relay")
        await opened(rig)
        heartbeat_at = timestamp(datetime.now(UTC) + HEARTBEAT_AHEAD)
        members = [ROLE, *clusters(fleet.clusters, heartbeat_at)]
        await create(rig, members, lambda done: progress("clusters", done, len(members)))
        await announced(rig)
        await rig.start("placement")
        for queue in (SCHEDULING, *AFTERWARDS):
            await pause_consumer(rig, "QUEUES", queue)
        documents = [placement(one, fleet.clusters) for one in fleet.cases]
        await create(rig, documents, lambda done: progress("placements", done, len(documents)))
        await _until_prepared(rig, progress, len(documents))
        yield rig


async def _until_prepared(rig: Rig, progress: ReportProgress, count: int) -> None:
    """Wait until each placement has its snapshots and waits to be scheduled."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    kinds = (PARTS.policy_snapshot.lower(), PARTS.resource_snapshot.lower())
    while True:
        census = await rig.store.census()
        there = min(census.get(f"objects.{kind}", 0) for kind in kinds)
        progress("snapshots", there, count)
        queued = (await _queue(rig, SCHEDULING))["num_pending"]
        if there >= count and queued >= count and not census["outbox"] and await _is_idle(rig, SNAPSHOTS):
            break
        rig.check_running()
        if time.monotonic() > deadline:
            raise BenchFailed(f"only {there} of {count} placements have snapshots, {queued} are queued")
        await asyncio.sleep(POLL_SECONDS)
    await announced(rig)
    await asyncio.sleep(QUIET_SECONDS)


async def place_queued(rig: Rig, fleet: BenchFleet) -> Measurement:
    """From letting the queue go until the last binding is announced."""
    count = fleet.bindings
    subject = f"{rig.subjects.prefix}.changed.{PARTS.binding.lower()}.>"
    target = await FilteredTarget.from_now(rig, "OBJECTS", subject, count)
    measurement = await measure_released(rig, "QUEUES", SCHEDULING, target, count)
    await _until_idle(rig, SCHEDULING)
    await announced(rig)
    await target.check_not_passed()
    return measurement


async def place_bare_on(rig: Rig, fleet: BenchFleet) -> Measurement:
    """The same work with the clusters of each placement given, in the place of the service of a prepared rig."""
    await rig.stop("placement")
    file = rig.directory.config / "clusters.json"
    write_json(file, {one.name: _given(one, fleet.clusters) for one in fleet.cases})
    await rig.start("bare", module=BARE, environ={CLUSTERS_VARIABLE: str(file)})
    return await place_queued(rig, fleet)


def _given(one: PlacementCase, count: int) -> list[str]:
    expected = bindings_expected(one, count)
    first = ring_of(one, count).first if one.sort == "ring" else 0 if one.sort == "all" else one.number
    return [cluster_name(number % count) for number in range(first, first + expected)]


async def _queue(rig: Rig, name: str) -> Document:
    return await jetstream_request(rig, f"CONSUMER.INFO.{rig.subjects.stream('QUEUES')}.{name}")


async def _is_idle(rig: Rig, queue: str) -> bool:
    info = await _queue(rig, queue)
    return not info["num_pending"] and not info["num_ack_pending"]


async def _until_idle(rig: Rig, queue: str) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not await _is_idle(rig, queue):
        rig.check_running()
        if time.monotonic() > deadline:
            raise BenchFailed(f"the queue {queue} does not become empty")
        await asyncio.sleep(SAMPLE_SECONDS)


async def _attempts_after_label_change(rig: Rig) -> int:
    """Put the first cluster into the second ring; returns how many placement cycles that led to."""
    before = int((await _queue(rig, SCHEDULING))["delivered"]["consumer_seq"])
    stored = await rig.store.get(ObjectKey("membercluster", "", cluster_name(0)))
    assert isinstance(stored, StoredObject), "it was created before"
    document = stored.document()
    document["metadata"]["labels"][RING_LABEL] = "ring-001"
    await rig.store.update(stored, document)
    seen, quiet_since = before, time.monotonic()
    while time.monotonic() - quiet_since < QUIET_SECONDS:
        await asyncio.sleep(POLL_SECONDS)
        delivered = int((await _queue(rig, SCHEDULING))["delivered"]["consumer_seq"])
        if delivered != seen or not await _is_idle(rig, SCHEDULING):
            seen, quiet_since = delivered, time.monotonic()
    await announced(rig)
    return seen - before


async def _landed(rig: Rig) -> Landed:
    found: dict[str, list[str]] = {}
    for stored in await _all(rig, PARTS.binding):
        document = stored.document()
        name = str(section(document, "metadata", "labels").get(PARENT_LABEL))
        found.setdefault(name, []).append(str(section(document, "spec").get("targetCluster")))
    return found


async def _all(rig: Rig, kind: str) -> list[StoredObject]:
    found: list[StoredObject] = []
    token: str | None = None
    while True:
        page = await rig.store.list_page(kind.lower(), continue_token=token)
        found += page.objects
        token = page.continue_token
        if token is None:
            return found


async def check_placed(rig: Rig, fleet: BenchFleet) -> Landed:
    """Raise BenchFailed unless each placement is where its policy says, once, and its snapshot agrees."""
    count = fleet.clusters
    landed = await _landed(rig)
    for one in fleet.cases:
        there = landed.get(one.name, ())
        expected = bindings_expected(one, count)
        if len(there) != expected or len(set(there)) != expected:
            raise BenchFailed(f"{one.name} has {len(there)} bindings on {len(set(there))} clusters, not {expected}")
        if not _FITS[one.sort](one, [int(name.rpartition("-")[2]) for name in there], count):
            raise BenchFailed(f"{one.name} is where its policy does not let it be")
    snapshots = await _all(rig, PARTS.policy_snapshot)
    unfinished = [each.key for each in snapshots if condition_status(conditions_of(each.document()), CONDITION) != TRUE]
    if unfinished:
        raise BenchFailed(f"{len(unfinished)} snapshots do not say that it is done, {unfinished[0]} among them")
    return landed


def _fits_ring(one: PlacementCase, there: Sequence[int], count: int) -> bool:
    ring = ring_of(one, count)
    return set(there) == set(range(ring.first, ring.first + ring.size))


def _fits_tier(one: PlacementCase, there: Sequence[int], _: int) -> bool:
    return {tier_of(number) for number in there} == {tier_wanted(one)}


def _fits_spread(_: PlacementCase, there: Sequence[int], __: int) -> bool:
    regions = Counter(region_of(number) for number in there)
    return sum(regions.values()) == CLUSTERS_WANTED and max(regions.values()) - min(regions.values()) <= 1


def _fits_anywhere(_: PlacementCase, __: Sequence[int], ___: int) -> bool:
    return True


_FITS: Mapping[str, Callable[[PlacementCase, Sequence[int], int], bool]] = {
    "all": _fits_anywhere,
    "ring": _fits_ring,
    "affinity": _fits_tier,
    "spread": _fits_spread,
}


async def _check_moved(rig: Rig, fleet: BenchFleet, before: Landed) -> Sequence[str]:
    """Raise BenchFailed unless just the placements of the second ring came to be on one cluster more.

    Returns the placements whose decision the change may have changed: those of the ring that it left, and of the other.
    """
    count = fleet.clusters
    old, new = rings(count)[:2]
    after = await _landed(rig)
    on_rings = {one.name: ring_of(one, count) for one in fleet.cases if one.sort == "ring"}
    for name, there in after.items():
        more = set(there) - set(before[name])
        if more != ({cluster_name(0)} if on_rings.get(name) == new else set()) or len(there) < len(before[name]):
            raise BenchFailed(f"{name} went to {sorted(more)} when a cluster changed its ring")
    return [name for name, ring in on_rings.items() if ring in (old, new)]
