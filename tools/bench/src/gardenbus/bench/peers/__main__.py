"""Command that measures Gardenbus beside Gardener's scheduler, by turns on the same manifests.

    python -m gardenbus.bench.peers                    build the peer, measure, print the table
    python -m gardenbus.bench.peers --page             write the table into docs/performance.md, too
    python -m gardenbus.bench.peers --turns 1 --reduced

Exit codes: 0 measured; 1 no Go, no sources, or a measurement that did not come about; 2 a wrong option.
"""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import uvloop

from gardenbus.bench.harness.retries import BenchFailed
from gardenbus.bench.peers.landscapes import LANDSCAPES, take_turns
from gardenbus.bench.peers.programs import built
from gardenbus.bench.peers.readings import PeerLandscape, PeerTurns
from gardenbus.bench.peers.table import table, with_table
from gardenbus.bench.stats import machine
from gardenbus.cli.client.api import quiet_logs
from gardenbus.embedded.servers import ServerMissing

PAGE = Path("docs/performance.md")
BUILT = Path(".tools/peers")


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out the command; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="gardenbus.bench.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--page", action="store_true", help=f"write the table into {PAGE}")
    parser.add_argument("--turns", type=int, default=3, help="turns of each (default: 3)")
    parser.add_argument("--reduced", action="store_true", help="the smallest landscape alone")
    read = parser.parse_args(arguments)
    if read.turns < 1:
        parser.error("--turns is 1 or more")
    quiet_logs()
    try:
        turns = _measured(read.turns, LANDSCAPES[:1] if read.reduced else LANDSCAPES)
    except (BenchFailed, ServerMissing) as error:
        sys.stderr.write(f"not measured: {error}\n")
        return 1
    made = table(turns, machine(), f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC")
    sys.stdout.write(made)
    if read.page:
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), made), encoding="utf-8")
    return 0


def _measured(count: int, landscapes: Sequence[PeerLandscape]) -> list[PeerTurns]:
    BUILT.mkdir(parents=True, exist_ok=True)
    sys.stderr.write("Gardener's scheduler is built: minutes the first time\n")
    program = built("gardener", BUILT)
    sys.stderr.write(f"built in {program.build_seconds:.0f} s\n")
    turns: list[PeerTurns] = []
    for landscape in landscapes:
        sys.stderr.write(f"{landscape.seeds} seeds, {landscape.placed} shoots placed before\n")
        turns.append(uvloop.run(take_turns(program.path, landscape, count)))
    return turns


if __name__ == "__main__":
    sys.exit(main())
