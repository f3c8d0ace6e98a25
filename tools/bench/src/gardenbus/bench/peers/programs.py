"""Programs that drive a peer's own code: Go modules below `tools/bench/peers`, built into a directory of their own.

Each reads manifests from its standard input, a JSON document a line, and prints a `PeerReading` as JSON.
"""

import shutil
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from gardenbus.bench.harness.retries import BenchFailed
from gardenbus.bench.peers.readings import PeerReading

SOURCES = Path("tools/bench/peers")
"""From the root of the repository."""

LONGEST_SECONDS = 1800.0
"""Of one measurement of a peer: only a hang takes as long."""


class PeerProgram(NamedTuple):
    """A program that was built."""

    path: Path
    build_seconds: float


def built(name: str, directory: Path, sources: Path = SOURCES) -> PeerProgram:
    """Build the program of a peer. Raises BenchFailed without Go or the sources, or where the build fails."""
    go = shutil.which("go")
    if go is None:
        raise BenchFailed("`go` is not on PATH: the peers are programs in Go, and are built from their sources")
    source = sources / name
    if not (source / "go.mod").exists():
        raise BenchFailed(f"{source}/go.mod is not there: run this in a clone of the repository")
    path = directory.resolve() / name
    began = time.monotonic()
    ended = subprocess.run(  # noqa: S603 - Go, and nothing of a user's
        [go, "build", "-o", path, "."], cwd=source, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise BenchFailed(f"{source} cannot be built: {ended.stderr.strip()[-2000:]}")
    return PeerProgram(path, time.monotonic() - began)


def measured(program: Path, manifests: Path, *arguments: str) -> PeerReading:
    """Have a program decide on all pending shoots of a file. Raises BenchFailed where it fails, or leaves one."""
    with manifests.open("rb") as content:
        ended = subprocess.run(  # noqa: S603 - a program that was built here
            [program, *arguments], stdin=content, capture_output=True, check=False, timeout=LONGEST_SECONDS
        )
    if ended.returncode:
        raise BenchFailed(f"{program.name} ended with {ended.returncode}: {ended.stderr.decode().strip()[-2000:]}")
    reading = msgspec.json.decode(ended.stdout, type=PeerReading)
    if reading.placed != reading.decisions:
        raise BenchFailed(f"{reading.peer} placed {reading.placed} of {reading.decisions}: {reading.first_error}")
    return reading
