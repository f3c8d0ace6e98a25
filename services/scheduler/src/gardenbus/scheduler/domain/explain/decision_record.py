"""The record of a decision that is kept with a bound shoot: a few numbers on why it was this seed at that time.

It is a JSON array of about 100 bytes, so that keeping one with each shoot costs next to nothing. Fields may be added
at the end; a reader of this version ignores what follows.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from gardenbus.scheduling.results import Assignment, SeedScore


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


class _ScoredRecord(_Record, frozen=True, array_like=True):
    """A decision by scores: those of the seed with their weights of then, and the sum of the runner-up."""

    profile: str = ""
    scores: tuple[SeedScore, ...] = ()
    runner_up_sum: int | None = None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_ScoredRecord).decode


def encode_record(assignment: Assignment, profile: str) -> bytes:
    """The record of an assignment that is about to be made; the profile is named where its scores choose."""
    summary, following = assignment.summary, assignment.runner_up
    fields = (
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
    if not assignment.scores:
        return _encode(_Record(*fields))
    return _encode(_ScoredRecord(*fields, profile, assignment.scores, following.total if following else None))


def decode_record(record: bytes, at: str) -> Mapping[str, Any] | None:
    """A record, made at an instant, for people; None when this version cannot read it.

    `funnel` are all filters but networks and capacity, in their order; `used` are the shoots that were on the seed
    before this one; `nearerWithoutRoom` were left after the funnel and nearer, but full or with networks that clashed;
    `eligible` were as near. `profile`, `sum` and `scores` are there where scores chose.
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
        "runnerUp": _runner_up(read),
        **_by_scores(read),
    }


def _runner_up(read: _ScoredRecord) -> Mapping[str, Any] | None:
    if read.runner_up is None:
        return None
    total = {"sum": read.runner_up_sum} if read.runner_up_sum is not None else {}
    return {"seed": read.runner_up, "used": read.runner_up_usage, **total}


def _by_scores(read: _ScoredRecord) -> Mapping[str, Any]:
    if not read.scores:
        return {}
    scores = [{"name": each.name, "weight": each.weight, "score": each.score} for each in read.scores]
    return {"profile": read.profile, "sum": sum(each.points for each in read.scores), "scores": scores}
