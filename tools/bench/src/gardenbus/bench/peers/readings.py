"""Readings of Gardenbus and of a peer on the same landscapes, turn by turn. Pure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from gardenbus.bench.comparison import Measurement


class PeerReading(msgspec.Struct, frozen=True):
    """One measurement of a peer: how many objects it placed, and what they took."""

    peer: str
    go: str
    placed: int
    seconds: float
    cpu_seconds: float
    first_error: str = ""


class PeerTurns(NamedTuple):
    """Turns of Gardenbus and of a peer on one landscape, turn by turn."""

    landscape: Sequence[str]
    """The first cells of its row."""

    own: Sequence[Mapping[str, float]]
    """Of each turn: `seconds`, `units`, and the CPU seconds of each process by its name."""

    peers: Sequence[PeerReading]


def costs(measurement: Measurement) -> Mapping[str, float]:
    """A turn of Gardenbus: `units`, `seconds`, and the CPU seconds of each process but the one that measures."""
    return {"units": measurement.count, "seconds": measurement.seconds, **measurement.product_cpu_s}


class ApiReading(NamedTuple):
    """One load on a Kubernetes API: requests or events a second, and CPU of each process for one, in microseconds."""

    server: str
    load: str
    rate: float
    cpu_us: Mapping[str, float]
    latency_ms: Mapping[str, float] = {}
