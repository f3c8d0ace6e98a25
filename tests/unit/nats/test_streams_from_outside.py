"""Streams that outsiders publish to take nothing by which one message does something to others."""

import pytest

from gardenbus.common.adapters.nats.streams import MAX_BYTES, streams
from gardenbus.common.api.identity.permissions import permissions_of
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import Subjects
from tests.fuzz.attackers import ATTACKERS

SUBJECTS = Subjects()
STREAMS = streams(SUBJECTS, 40.0)


def overlap(one: str, other: str) -> bool:
    """True if a subject matches both patterns."""
    left, right = one.split("."), other.split(".")
    for number, (a, b) in enumerate(zip(left, right, strict=False)):
        if ">" in (a, b):
            return True
        if "*" not in (a, b) and a != b:
            return False
        if number + 1 == min(len(left), len(right)):
            return len(left) == len(right)
    return False


def published_to(principal: Principal) -> set[str]:
    """Streams that a principal's messages are stored in."""
    granted = permissions_of(principal, SUBJECTS).publish
    return {
        name
        for name, stream in STREAMS.items()
        if any(overlap(subject, pattern) for subject in stream["subjects"] for pattern in granted)
    }


@pytest.mark.parametrize("principal", ATTACKERS, ids=str)
def test_what_somebody_outside_publishes_to_takes_no_batches_and_no_rollups(principal: Principal) -> None:
    for name in published_to(principal):
        assert STREAMS[name]["allow_atomic"] is False, name
        assert STREAMS[name]["allow_rollup_hdrs"] is False, name
        assert not STREAMS[name].get("allow_msg_schedules"), name


@pytest.mark.parametrize(
    ("principal", "names"),
    [
        (Principal("user", "ann"), {"REQUESTS"}),
        (Principal("gardenlet", "aws-cork"), {"REPORTS", "LEASES"}),
        (Principal("member-agent", "paris"), {"REPORTS"}),
        (Principal("scheduler", "mine"), set[str]()),
        (Principal("extension", "aws-cork"), set[str]()),
        (Principal("plugin", "carbon"), set[str]()),
    ],
    ids=["user", "gardenlet", "member agent", "scheduler", "extension", "plug-in"],
)
def test_what_somebody_outside_sends_is_stored_in_few_streams(principal: Principal, names: set[str]) -> None:
    assert published_to(principal) == names


def test_all_that_is_not_dropped_of_what_outsiders_publish_has_a_limit_of_bytes() -> None:
    reached = {name for principal in ATTACKERS for name in published_to(principal)}
    assert reached - MAX_BYTES.keys() == {"LEASES"}, "which has one message a subject, and an age"
