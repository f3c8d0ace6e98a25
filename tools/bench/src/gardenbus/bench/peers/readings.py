"""Readings of Gardenbus and of a peer on the same landscapes, turn by turn. Pure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec


class PeerLandscape(NamedTuple):
    """Seeds, shoots that were placed before, and how many are pending: for Gardenbus, and for the slower peer."""

    seeds: int
    placed: int
    own: int
    peers: int


class PeerReading(msgspec.Struct, frozen=True):
    """One measurement of a peer: how many decisions, and what they took."""

    peer: str
    go: str
    decisions: int
    placed: int
    seconds: float
    cpu_seconds: float
    first_error: str = ""


class PeerTurns(NamedTuple):
    """Turns of Gardenbus and of a peer on one landscape, turn by turn."""

    landscape: PeerLandscape
    own: Sequence[Mapping[str, float]]
    """Of each turn: `seconds`, `units`, and the CPU seconds of each process by its name."""

    peers: Sequence[PeerReading]


class ApiReading(NamedTuple):
    """One load on a Kubernetes API: requests or events a second, and CPU of each process for one, in microseconds."""

    server: str
    load: str
    rate: float
    cpu_us: Mapping[str, float]
    latency_ms: Mapping[str, float] = {}
