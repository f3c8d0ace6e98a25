"""Command that measures Gardenbus beside its peers, by turns.

    python -m gardenbus.bench.peers                    measure beside all, print the tables
    python -m gardenbus.bench.peers --page             write the tables into docs/performance.md, too
    python -m gardenbus.bench.peers --only scheduler   beside one of them
    python -m gardenbus.bench.peers --turns 1 --reduced

Peers are `scheduler` (Gardener's), `kubefleet` (KubeFleet's scheduler) and `apiserver` (kube-apiserver with etcd).
The schedulers are built from their sources (needs Go); the API server is found by GARDENBUS_KUBE_BIN.
Exit codes: 0 measured; 1 a peer that is not there, or a measurement that did not come about; 2 a wrong option.
"""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Protocol

import uvloop

from gardenbus.bench.harness.retries import BenchFailed
from gardenbus.bench.peers.api_loads import ApiSize, take_turn
from gardenbus.bench.peers.api_servers import two_api_servers
from gardenbus.bench.peers.fleets import FLEETS, PEER_FLEETS, take_fleet_turns
from gardenbus.bench.peers.landscapes import LANDSCAPES, SCHEDULERS, take_turns
from gardenbus.bench.peers.programs import built
from gardenbus.bench.peers.readings import ApiReading, PeerTurns
from gardenbus.bench.peers.table import above, api_table, table, with_table
from gardenbus.bench.stats import machine
from gardenbus.cli.client.api import quiet_logs
from gardenbus.common.errors import GardenbusError
from gardenbus.embedded.servers import ServerMissing

PAGE = Path("docs/performance.md")
BUILT = Path(".tools/peers")


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out the command; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="gardenbus.bench.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--page", action="store_true", help=f"write the tables into {PAGE}")
    parser.add_argument("--turns", type=int, default=3, help="turns of each (default: 3)")
    parser.add_argument("--reduced", action="store_true", help="a size that says nothing about speed")
    parser.add_argument("--only", choices=list(_PEERS), help="beside one peer (default: all)")
    read = parser.parse_args(arguments)
    if read.turns < 1:
        parser.error("--turns is 1 or more")
    quiet_logs()
    try:
        for name in [read.only] if read.only else _PEERS:
            peer = _PEERS[name]
            made = peer.measure(read.turns, reduced=read.reduced)
            sys.stdout.write(f"{made}\n")
            if read.page:
                PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), made, peer.place), encoding="utf-8")
    except (BenchFailed, ServerMissing, GardenbusError) as error:
        sys.stderr.write(f"not measured: {error}\n")
        return 1
    return 0


def _beside_scheduler(count: int, *, reduced: bool) -> str:
    program = _program("gardener", "Gardener's scheduler")
    turns: list[PeerTurns] = []
    for landscape in LANDSCAPES[:1] if reduced else LANDSCAPES:
        sys.stderr.write(f"{landscape.seeds} seeds, {landscape.placed} shoots placed before\n")
        turns.append(uvloop.run(take_turns(program, landscape, count)))
    return table(SCHEDULERS, turns, machine(), _now())


def _beside_kubefleet(count: int, *, reduced: bool) -> str:
    program = _program("kubefleet", "KubeFleet's scheduler")
    fleets = [each._replace(clusters=100, own=3, peers=3) for each in PEER_FLEETS] if reduced else PEER_FLEETS
    turns: list[PeerTurns] = []
    for fleet in fleets:
        sys.stderr.write(f"{fleet.clusters} clusters, {fleet.description}\n")
        turns.append(uvloop.run(take_fleet_turns(program, fleet, count)))
    return table(FLEETS, turns, machine(), _now())


def _program(name: str, description: str) -> Path:
    BUILT.mkdir(parents=True, exist_ok=True)
    sys.stderr.write(f"{description} is built: minutes the first time\n")
    program = built(name, BUILT)
    sys.stderr.write(f"built in {program.build_seconds:.0f} s\n")
    return program.path


def _beside_apiserver(count: int, *, reduced: bool) -> str:
    size = ApiSize(objects=200, reads=200, lists=2, watches=10, changes=20) if reduced else ApiSize()

    async def measured() -> tuple[list[ApiReading], str]:
        async with two_api_servers() as (own, peer, version):
            readings: list[ApiReading] = []
            for turn in range(count):
                for server in (own, peer):
                    sys.stderr.write(f"{server.name}, turn {turn + 1}\n")
                    readings += await take_turn(server, turn, size)
            return readings, version

    readings, version = uvloop.run(measured())
    return api_table(readings, version, above(machine(), _now(), count))


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"


class _Measure(Protocol):
    def __call__(self, count: int, *, reduced: bool) -> str: ...


class _Peer(NamedTuple):
    """A peer of the command: the place of its table on the page, and what measures it."""

    place: str
    measure: _Measure


_PEERS = {
    "scheduler": _Peer(SCHEDULERS.place, _beside_scheduler),
    "kubefleet": _Peer(FLEETS.place, _beside_kubefleet),
    "apiserver": _Peer("api servers", _beside_apiserver),
}


if __name__ == "__main__":
    sys.exit(main())
