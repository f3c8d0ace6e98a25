"""What is remembered of a decision when its shoot is bound: a few numbers that say why it was this seed *then*. Pure.

It is a JSON array of about 100 bytes, so that it costs next to nothing to keep one with each shoot. Fields may be added
at the end; a reader of this version passes over what it does not know.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from gardenbus.scheduling.outcome import Placement


class _Record(msgspec.Struct, frozen=True, array_like=True):
    seed: str
    strategy: str = ""
    considered: int = 0
    rejections: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    kept: int = 0
    nearer: int = 0
    eligible: int = 0
    distance: int | None = None
    usage: int = 0
    capacity: int | None = None
    runner_up: str | None = None
    runner_up_usage: int = 0


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Record).decode


def record_of(placement: Placement) -> bytes:
    """The record of a placement that is about to be made."""
    grounds, following = placement.grounds, placement.runner_up
    return _encode(
        _Record(
            placement.seed,
            placement.strategy,
            placement.considered,
            grounds.rejections,
            grounds.kept,
            placement.nearer,
            placement.eligible,
            placement.distance,
            placement.usage,
            placement.capacity,
            following.seed if following is not None else None,
            following.usage if following is not None else 0,
        )
    )


def told(record: bytes, at: str) -> Mapping[str, Any] | None:
    """A record for people, made at an instant; None when it is none that this version can read.

    `funnel` are the rules that ask neither for networks nor for capacity, in their order; `used` are the shoots that
    were on the seed before this one; `nearerWithoutRoom` were left after the funnel and nearer, but full or with
    networks that clashed; `eligible` were as near.
    """
    try:
        read = _decode(record)
    except msgspec.MsgspecError:
        return None
    left, funnel = read.considered, list[Mapping[str, Any]]()
    for rule, rejected in read.rejections.items():
        left -= rejected
        funnel.append({"rule": rule, "rejected": rejected, "left": left})
    return {
        "at": at,
        "seed": read.seed,
        "strategy": read.strategy,
        "considered": read.considered,
        "funnel": funnel,
        "left": read.kept,
        "nearerWithoutRoom": read.nearer,
        "eligible": read.eligible,
        "distance": read.distance,
        "used": read.usage,
        "allocatable": read.capacity,
        "runnerUp": {"seed": read.runner_up, "used": read.runner_up_usage} if read.runner_up is not None else None,
    }
