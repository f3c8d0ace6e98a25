"""The record of a decision that is kept with a bound shoot: a few numbers on why it was this seed at that time.

It is a JSON array of about 100 bytes, so that keeping one with each shoot costs next to nothing. Fields may be added
at the end; a reader of this version ignores what follows.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from gardenbus.scheduling.results import Assignment


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


def encode_record(assignment: Assignment) -> bytes:
    """The record of an assignment that is about to be made."""
    summary, following = assignment.summary, assignment.runner_up
    return _encode(
        _Record(
            assignment.seed,
            assignment.strategy,
            assignment.considered,
            summary.rejections,
            summary.kept,
            assignment.nearer,
            assignment.eligible,
            assignment.distance,
            assignment.usage,
            assignment.capacity,
            following.seed if following is not None else None,
            following.usage if following is not None else 0,
        )
    )


def decode_record(record: bytes, at: str) -> Mapping[str, Any] | None:
    """A record, made at an instant, for people; None when this version cannot read it.

    `funnel` are all filters but networks and capacity, in their order; `used` are the shoots that were on the seed
    before this one; `nearerWithoutRoom` were left after the funnel and nearer, but full or with networks that clashed;
    `eligible` were as near.
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
