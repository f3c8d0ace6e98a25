"""Measures alternatives and prints a table."""

import argparse
import sys
from collections.abc import Sequence

import uvloop

from gardenbus.cli.bench.alternatives.contests import CONTESTS, rows_of
from gardenbus.cli.bench.alternatives.spending import HEAD, QUICK, Size, as_line
from gardenbus.cli.bench.figures import machine
from gardenbus.cli.bench.rig import BenchFailed
from gardenbus.cli.client import quiet_logs


def main(arguments: Sequence[str]) -> int:
    """Measure what is named, or all; 1 when a measurement did not come about."""
    parser = argparse.ArgumentParser(prog="gardenbus.cli.bench.alternatives", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of: {', '.join(CONTESTS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="tiny counts: says that it works, nothing about speed")
    wishes = parser.parse_args(arguments)
    if unknown := sorted(set(wishes.names) - set(CONTESTS)):
        parser.error(f"there is no {', '.join(unknown)}, only {', '.join(CONTESTS)}")
    quiet_logs()
    try:
        uvloop.run(_measure(wishes.names or list(CONTESTS), QUICK if wishes.quick else Size()))
    except BenchFailed as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


async def _measure(names: Sequence[str], size: Size) -> None:
    described = machine()
    sys.stdout.write(", ".join(f"{name}: {value}" for name, value in described.items()) + "\n\n")
    sys.stdout.write(HEAD)
    for name in names:
        sys.stdout.writelines(as_line(row) for row in await rows_of(name, size, _tell))
        sys.stdout.flush()


def _tell(what: str) -> None:
    sys.stderr.write(f"{what} …\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
