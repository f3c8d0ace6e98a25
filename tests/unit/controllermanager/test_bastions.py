"""Lives of Bastions. Cases as in Gardener's reconciler test."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.controllermanager.domain.bastions import (
    AwaitExpiration,
    DeleteBastion,
    LeaveBastion,
    WriteBastion,
    decide_bastion,
    shoot_of,
)
from tests.support.builders import a_shoot, merged

CREATED_AT = datetime(2026, 3, 10, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
LONGEST = timedelta(hours=24)
SHOOT = a_shoot(spec={"seedName": "aws-eu1"})
KEEPALIVE = {"metadata": {"annotations": {"gardener.cloud/operation": "keepalive", "note": "mine"}}}


def a_bastion(**changes: Any) -> Document:
    bastion: Document = {
        "apiVersion": "operations.gardener.cloud/v1alpha1",
        "kind": "Bastion",
        "metadata": {"name": "door", "namespace": "garden-dev", "creationTimestamp": "2026-03-10T12:00:00Z"},
        "spec": {"shootRef": {"name": "apollo"}, "seedName": "aws-eu1"},
        "status": {"expirationTimestamp": "2026-03-10T13:00:00Z"},
    }
    return merged(bastion, changes)


def test_it_leads_into_a_shoot_of_its_namespace() -> None:
    assert shoot_of(a_bastion()) == ObjectKey("shoot", "garden-dev", "apollo")


def test_a_new_one_lives_for_an_hour() -> None:
    written = decide_bastion(a_bastion(status=None), SHOOT, CREATED_AT, LONGEST)
    assert isinstance(written, WriteBastion)
    assert written.document["status"] == {
        "lastHeartbeatTimestamp": "2026-03-10T12:00:00Z",
        "expirationTimestamp": "2026-03-10T13:00:00Z",
    }


def test_a_heartbeat_gives_it_another_hour_and_is_taken_off() -> None:
    written = decide_bastion(a_bastion(**KEEPALIVE), SHOOT, CREATED_AT + 0.5 * HOUR, LONGEST)
    assert isinstance(written, WriteBastion)
    assert written.document["status"]["expirationTimestamp"] == "2026-03-10T13:30:00Z"
    assert written.document["metadata"]["annotations"] == {"note": "mine"}


def test_no_heartbeat_takes_it_beyond_the_longest_life() -> None:
    late = merged(a_bastion(**KEEPALIVE), {"status": {"expirationTimestamp": "2026-03-11T11:50:00Z"}})
    written = decide_bastion(late, SHOOT, CREATED_AT + 23.5 * HOUR, LONGEST)
    assert isinstance(written, WriteBastion)
    assert written.document["status"]["expirationTimestamp"] == "2026-03-11T12:00:00Z"


def test_it_waits_for_whichever_end_comes_first() -> None:
    assert decide_bastion(a_bastion(), SHOOT, CREATED_AT, LONGEST) == AwaitExpiration(CREATED_AT + HOUR)
    assert decide_bastion(a_bastion(), SHOOT, CREATED_AT, 0.5 * HOUR) == AwaitExpiration(CREATED_AT + 0.5 * HOUR)


@pytest.mark.parametrize(
    ("bastion", "shoot", "hours", "reason"),
    [
        (a_bastion(), None, 0, "its shoot is gone"),
        (a_bastion(), merged(SHOOT, {"metadata": {"deletionTimestamp": "x"}}), 0, "its shoot is being deleted"),
        (a_bastion(), merged(SHOOT, {"spec": {"seedName": "gcp"}}), 0, "has moved from the seed aws-eu1 to gcp"),
        (a_bastion(), SHOOT, 1, "it expired at 2026-03-10T13:00:00Z"),
        (a_bastion(**KEEPALIVE), SHOOT, 1, "it expired"),
        (a_bastion(status={"expirationTimestamp": "2026-03-20T13:00:00Z"}), SHOOT, 24, "its maximum lifetime"),
    ],
)
def test_it_goes(bastion: Document, shoot: Document | None, hours: float, reason: str) -> None:
    found = decide_bastion(bastion, shoot, CREATED_AT + hours * HOUR, LONGEST)
    assert isinstance(found, DeleteBastion)
    assert reason in found.reason


def test_one_that_is_being_deleted_is_left() -> None:
    leaving = a_bastion(metadata={"deletionTimestamp": "2026-03-10T12:30:00Z"})
    assert decide_bastion(leaving, None, CREATED_AT + 48 * HOUR, LONGEST) == LeaveBastion()
