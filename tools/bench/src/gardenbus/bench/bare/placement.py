"""The bare pipe of placements: takes scheduling's work and writes as many bindings, by the same functions.

`python -m gardenbus.bench.bare.placement`, as a process in the placement service's place. Snapshots and placements
are read before anything is measured, and the clusters of each placement come from a file. For each piece of work it
writes what a cycle writes: the snapshot with decisions, then bindings, 50 a call. No write has a condition.
"""

import asyncio
import os
from collections.abc import Mapping

import msgspec

from gardenbus.common.api.document import StoredObject, section
from gardenbus.common.api.fleet.placement_parts import ClusterDecision, ClusterScore, of
from gardenbus.common.api.fleet.placements import CLUSTER_KIND, PARENT_LABEL, Placement
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.writes import create_all, update
from gardenbus.common.ports.bus import QueueMessage, WorkQueue
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.common.ports.store import Store
from gardenbus.common.runtime.connections import connect_all
from gardenbus.common.runtime.service import ServiceContext, run_service
from gardenbus.common.runtime.settings import CommonSettings, load
from gardenbus.fleet.cycle_result import CycleResult, Pick
from gardenbus.placement.app import SCHEDULING
from gardenbus.placement.domain.bindings import new_binding
from gardenbus.placement.domain.policy_snapshots import CYCLE, incremented
from gardenbus.placement.domain.scheduling_status import with_outcome
from gardenbus.placement.settings import PlacementSettings

CLUSTERS_VARIABLE = "GARDENBUS_BENCH_CLUSTERS"
"""A file of JSON: placement name to the names of its clusters."""

WAIT_SECONDS = 1.0
OTHER_DECISIONS = 20
"""Clusters that were not selected are reported, too: as many as a status may hold."""


async def build(context: ServiceContext[CommonSettings]) -> None:
    """Read what is there, take work, write."""
    connections = await connect_all(context, reporter="bare")
    with open(os.environ[CLUSTERS_VARIABLE], "rb") as file:  # noqa: ASYNC230, PTH123 - before anything runs
        clusters = msgspec.json.decode(file.read(), type=dict[str, list[str]])
    subjects, store = connections.subjects, connections.store
    placements = {
        stored.key.name: Placement.from_document(stored.encoded())
        for stored in (await _all_of(store, CLUSTER_KIND)).values()
    }
    snapshots = {
        str(section(stored.document(), "metadata", "labels")[PARENT_LABEL]): stored
        for stored in (await _all_of(store, of(CLUSTER_KIND).policy_snapshot.lower())).values()
    }
    queue = await connections.bus.work_queue(subjects.stream("QUEUES"), SCHEDULING, subjects.queue_of(SCHEDULING))
    context.spawn("place", _Pipe(store, context.clock, clusters, placements, snapshots).run(queue))


async def _all_of(store: Store, kind: str) -> Mapping[ObjectKey, StoredObject]:
    found: dict[ObjectKey, StoredObject] = {}
    token: str | None = None
    while True:
        page = await store.list_page(kind, continue_token=token)
        found |= {stored.key: stored for stored in page.objects}
        token = page.continue_token
        if token is None:
            return found


class _Pipe:
    """Writes what comes."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        clusters: Mapping[str, list[str]],
        placements: Mapping[str, Placement],
        snapshots: Mapping[str, StoredObject],
    ) -> None:
        self._store = store
        self._clock = clock
        self._clusters = clusters
        self._placements = placements
        self._snapshots = snapshots

    async def run(self, queue: WorkQueue) -> None:
        workers = PlacementSettings().scheduling_workers
        in_flight: set[asyncio.Task[None]] = set()
        while True:
            if len(in_flight) == workers:
                ended, in_flight = await asyncio.wait(in_flight, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    task.result()
            for work in await queue.fetch(workers - len(in_flight), WAIT_SECONDS):
                in_flight.add(asyncio.create_task(self._carry_out(work)))

    async def _carry_out(self, work: QueueMessage) -> None:
        name = work.message.subject.rsplit(".", 1)[1]
        snapshot, placement = self._snapshots[name], self._placements[name]
        picks = [Pick(cluster, _decision(cluster, selected=True)) for cluster in self._clusters[name]]
        others = (_decision(f"member-{number:05}", selected=False) for number in range(OTHER_DECISIONS))
        cycle = CycleResult(
            decisions=(*(pick.decision for pick in picks[:1000]), *others), message="as many as there are"
        )
        recorded = with_outcome(snapshot.document(), cycle, timestamp(self._clock.now()))
        snapshot = await update(self._store, snapshot, incremented(recorded, CYCLE))
        bindings = [new_binding(placement, snapshot.key.name, pick, ()) for pick in picks]
        await create_all(self._store, bindings, strict=True)
        await work.ack()


def _decision(cluster: str, *, selected: bool) -> ClusterDecision:
    reason = "picked by the scheduling policy" if selected else "others fit better, or something speaks against it"
    return ClusterDecision(cluster, selected, ClusterScore(), reason)


if __name__ == "__main__":
    run_service("bare-placement", lambda: load(CommonSettings), build)
