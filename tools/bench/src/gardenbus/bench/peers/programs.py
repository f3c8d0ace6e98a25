"""Programs that drive a peer's own code: Go modules below `tools/bench/peers`, built into a directory of their own.

Each reads manifests from its standard input, a JSON document a line, and prints a `PeerReading` as JSON.
"""

import shutil
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from gardenbus.bench.harness.retries import BenchFailed
from gardenbus.bench.peers.readings import PeerReading
from gardenbus.common.api.document import Document

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


def write_manifests(file: Path, documents: Iterable[Document]) -> None:
    """Write what a program reads: a JSON document a line."""
    with file.open("wb") as lines:
        lines.writelines(msgspec.json.encode(each) + b"\n" for each in documents)


def measured(program: Path, manifests: Path, expected: int) -> PeerReading:
    """Have a program place what a file has pending. Raises BenchFailed where it fails, or places another number."""
    with manifests.open("rb") as content:
        ended = subprocess.run(  # noqa: S603 - a program that was built here
            [program], stdin=content, capture_output=True, check=False, timeout=LONGEST_SECONDS
        )
    if ended.returncode:
        raise BenchFailed(f"{program.name} ended with {ended.returncode}: {ended.stderr.decode().strip()[-2000:]}")
    reading = msgspec.json.decode(ended.stdout, type=PeerReading)
    if reading.placed != expected:
        raise BenchFailed(f"{reading.peer} placed {reading.placed} of {expected}: {reading.first_error}")
    return reading
