"""Totals of the seeds."""

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.history import SeedState
from gardenbus.lifecycle.domain.freshness import LeaseRecord
from gardenbus.lifecycle.domain.seed_totals import (
    CountedSeed,
    LeaseLateness,
    SeedLocation,
    counted_seed,
    lateness,
    total_seeds,
)
from tests.support.builders import a_condition, a_seed, merged

MARK = {"seedmanagement.gardener.cloud/marked-for-removal": "garden/set"}
UNKNOWN = {"status": {"conditions": [a_condition("GardenletReady", "Unknown")]}}
NOT_READY = {"status": {"conditions": [a_condition("GardenletReady", "False")]}}
HIDDEN = {"spec": {"settings": {"scheduling": {"visible": False}}}}


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, "ready"),
        (HIDDEN, "cordoned"),
        (NOT_READY, "not-ready"),
        ({"status": {"lastOperation": None}}, "not-ready"),
        (UNKNOWN, "unknown"),
        (merged(HIDDEN, UNKNOWN), "unknown"),
        (merged(UNKNOWN, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}), "deleting"),
        ({"metadata": {"annotations": MARK}}, "deleting"),
    ],
)
def test_a_seed_counts_by_the_worst_that_can_be_said_of_it(changes: Document, state: SeedState) -> None:
    assert counted_seed(merged(a_seed(), changes)).state == state


def test_a_capacity_that_cannot_be_read_counts_as_none_and_a_missing_one_as_no_limit() -> None:
    unreadable = merged(a_seed(), {"status": {"allocatable": {"shoots": "many"}}})
    unlimited = merged(a_seed(), {"status": {"allocatable": None}})
    assert counted_seed(unreadable).allocatable == 0
    assert counted_seed(unlimited).allocatable is None


def test_use_and_places_are_added_up_by_provider_and_region() -> None:
    ireland, virginia = SeedLocation("aws", "eu-west-1"), SeedLocation("aws", "us-east-1")
    seeds = {
        "a": CountedSeed("ready", ireland, 10),
        "b": CountedSeed("ready", ireland, None),
        "c": CountedSeed("unknown", virginia, 5),
    }

    sums = total_seeds(seeds, {"a": 3, "b": 4, "gone": 9})

    assert sums.seeds == {("ready", ireland): 2, ("unknown", virginia): 1}
    assert sums.used == {ireland: 7, virginia: 0}
    assert sums.allocatable == {ireland: 10, virginia: 5}


def test_a_lease_is_late_after_a_while_and_one_never_heard_of_at_once() -> None:
    records = [LeaseRecord(arrived_at=95.0), LeaseRecord(arrived_at=70.0), None]
    assert lateness(records, now=100.0, late_after_seconds=20.0) == LeaseLateness(2, 30.0)
    assert lateness([], now=100.0, late_after_seconds=20.0) == LeaseLateness(0, 0.0)
