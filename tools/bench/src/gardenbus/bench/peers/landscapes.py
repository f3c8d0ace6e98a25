"""Landscapes on which Gardenbus and Gardener's scheduler decide by turns, and what each turn took."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from gardenbus.bench.comparison import no_progress
from gardenbus.bench.harness.loading import BenchLandscape
from gardenbus.bench.harness.rig import a_rig
from gardenbus.bench.manifests.shoots import basics, names, placed, seed, seed_name, shoot
from gardenbus.bench.peers.programs import measured, write_manifests
from gardenbus.bench.peers.readings import PeerReading, PeerTurns, costs
from gardenbus.bench.peers.table import PeerTable
from gardenbus.bench.scenarios.scheduling import ShootBatch, bind_by_scheduler, prepare, start_scheduler
from gardenbus.common.api.document import Document
from gardenbus.embedded.durability import Durability

SCHEDULERS = PeerTable("peers", ("seeds", "placed before"), "decisions", "scheduler")


class PeerLandscape(NamedTuple):
    """Seeds, shoots that were placed before, and how many are pending: for Gardenbus, and for the slower peer."""

    seeds: int
    placed: int
    own: int
    peers: int


LANDSCAPES: Sequence[PeerLandscape] = (
    PeerLandscape(seeds=10, placed=100, own=2000, peers=200),
    PeerLandscape(seeds=1000, placed=20_000, own=4000, peers=40),
    PeerLandscape(seeds=5000, placed=20_000, own=4000, peers=20),
)


async def take_turns(program: Path, landscape: PeerLandscape, count: int) -> PeerTurns:
    """Decide on the landscape's pending shoots `count` times each: ours, theirs, ours … Raises BenchFailed."""
    own: list[Mapping[str, float]] = []
    theirs: list[PeerReading] = []
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        manifests = Path(file.name)
        write_manifests(manifests, _documents(landscape))
        async with a_rig(Durability.PROCESS) as rig:
            await prepare(rig, BenchLandscape(landscape.seeds, landscape.placed), no_progress)
            await start_scheduler(rig)
            await bind_by_scheduler(rig, ShootBatch("warm", landscape.peers), no_progress)
            for turn in range(count):
                batch = ShootBatch(f"turn{turn}", landscape.own)
                own.append(costs(await bind_by_scheduler(rig, batch, no_progress)))
                theirs.append(measured(program, manifests, landscape.peers))
    return PeerTurns((f"{landscape.seeds:,}", f"{landscape.placed:,}"), own, theirs)


def _documents(landscape: PeerLandscape) -> Iterator[Document]:
    """All manifests of a landscape, as `prepare` loads them, and pending shoots for a peer."""
    before = enumerate(names("placed", landscape.placed))
    return chain(
        basics("uniform"),
        (seed(number, "uniform") for number in range(landscape.seeds)),
        (placed(name, number, seed_name(number % landscape.seeds), "uniform") for number, name in before),
        (shoot(name, number, "uniform") for number, name in enumerate(names("new", landscape.peers))),
    )
