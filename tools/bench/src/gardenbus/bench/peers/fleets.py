"""Fleets on which Gardenbus and KubeFleet's scheduler place by turns, a sort of placement at a time."""

import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from gardenbus.bench.comparison import no_progress
from gardenbus.bench.manifests.fleet import PlacementCase, Sort, clusters, placement
from gardenbus.bench.peers.programs import measured, write_manifests
from gardenbus.bench.peers.readings import PeerReading, PeerTurns, costs
from gardenbus.bench.peers.table import PeerTable
from gardenbus.bench.scenarios.placement import HEARTBEAT_AHEAD, BenchFleet, check_placed, place_queued, prepared
from gardenbus.common.ports.clock import timestamp
from gardenbus.embedded.durability import Durability

FLEETS = PeerTable("placements", ("placements", "clusters"), "bindings", "placement")


class PeerFleet(NamedTuple):
    """Placements of one sort, and how many: for Gardenbus, and for the slower peer."""

    description: str
    sort: Sort
    clusters: int
    own: int
    peers: int


PEER_FLEETS: Sequence[PeerFleet] = (
    PeerFleet("PickN of 10, affinity", "affinity", 2000, 300, 100),
    PeerFleet("PickN of 10, spread over regions", "spread", 2000, 300, 10),
    PeerFleet("PickAll, affinity", "ring", 2000, 200, 100),
    PeerFleet("PickAll", "all", 2000, 2, 10),
)


async def take_fleet_turns(program: Path, fleet: PeerFleet, count: int) -> PeerTurns:
    """Place all of a sort `count` times each: ours, theirs, ours … Raises BenchFailed."""
    own: list[Mapping[str, float]] = []
    theirs: list[PeerReading] = []
    for _ in range(count):
        own.append(await _own_turn(_of_sort(fleet, fleet.own)))
        theirs.append(_peers_turn(program, _of_sort(fleet, fleet.peers)))
    return PeerTurns((fleet.description, f"{fleet.clusters:,}"), own, theirs)


async def _own_turn(fleet: BenchFleet) -> Mapping[str, float]:
    async with prepared(fleet, Durability.PROCESS, no_progress) as rig:
        measurement = await place_queued(rig, fleet)
        await check_placed(rig, fleet)
        return costs(measurement)


def _peers_turn(program: Path, fleet: BenchFleet) -> PeerReading:
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        manifests = Path(file.name)
        heartbeat_at = timestamp(datetime.now(UTC) + HEARTBEAT_AHEAD)
        placements = [placement(one, fleet.clusters) for one in fleet.cases]
        write_manifests(manifests, [*clusters(fleet.clusters, heartbeat_at), *placements])
        return measured(program, manifests, fleet.bindings)


def _of_sort(fleet: PeerFleet, count: int) -> BenchFleet:
    return BenchFleet(fleet.clusters, [PlacementCase(fleet.sort, number) for number in range(count)])
