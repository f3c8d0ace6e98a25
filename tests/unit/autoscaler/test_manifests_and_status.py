"""Manifests read into numbers, and the status."""

from fractions import Fraction
from typing import Any

import pytest

from gardenbus.autoscaler.domain.manifests import (
    amounts,
    is_controlled_by,
    ordered_replicas,
    owner_sets,
    pending_replica,
    replica_of,
    unschedulable_message,
)
from gardenbus.autoscaler.domain.status import with_decision, with_failure
from gardenbus.autoscaling.seed_set import ReplicaState
from gardenbus.common.api.conditions import conditions_of, get_condition
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.seed_autoscalers import SeedAutoscaler
from gardenbus.common.api.garden.seed_management import CORDONED_BY, CORDONED_BY_OPERATOR, REMOVAL_ANNOTATION
from tests.support.autoscaling import START, AutoscalerDriver, a_set, a_spec, an_autoscaler
from tests.support.builders import a_condition, a_seed, a_shoot, merged

SHOOT = a_shoot("grove-0", "garden")
MANAGED_SEED: Document = {"kind": "ManagedSeed", "metadata": {"name": "grove-0", "namespace": "garden"}}
TEN = {"shoots": Fraction(10)}


def read(seed: Document | None, pending: str = "", managed_seed: Document | None = MANAGED_SEED) -> ReplicaState:
    return replica_of(SHOOT, managed_seed, seed, pending)


def test_a_ready_seed_is_built() -> None:
    assert read(a_seed("grove-0", shoots="10")) == ReplicaState(name="grove-0", allocatable=TEN)


@pytest.mark.parametrize("managed_seed", [None, MANAGED_SEED])
def test_without_a_seed_it_is_in_the_making(managed_seed: Document | None) -> None:
    assert read(None, managed_seed=managed_seed) == ReplicaState(name="grove-0", is_built=False)


def test_a_registered_seed_that_never_was_ready_is_in_the_making() -> None:
    assert read(a_seed("grove-0", ready=False)) == ReplicaState(name="grove-0", is_built=False)
    unfinished = a_seed("grove-0", shoots="10", status={"conditions": [a_condition("GardenletReady", "False")]})
    assert not read(unfinished, pending="grove-0").is_built


def test_a_seed_that_is_not_ready_any_more_is_built_all_the_same() -> None:
    silent = a_seed("grove-0", shoots="10", status={"conditions": [a_condition("GardenletReady", "Unknown")]})
    assert read(silent) == ReplicaState(name="grove-0", allocatable=TEN)


def test_a_seed_that_is_being_emptied_takes_no_shoots_but_stays() -> None:
    emptied = a_seed("grove-0", shoots="10", metadata={"annotations": {CORDONED_BY: "garden/grove"}})
    assert read(emptied) == ReplicaState(name="grove-0", is_built=False, allocatable=TEN)


def test_a_seed_that_an_operator_closed_stands_and_nobody_waits_for_its_places() -> None:
    closed = a_seed("grove-0", shoots="10", metadata={"annotations": {CORDONED_BY: CORDONED_BY_OPERATOR}})
    assert read(closed) == ReplicaState(name="grove-0", allocatable=TEN)


def test_the_replica_in_the_making_is_the_pending_one_that_was_never_ready() -> None:
    status: Document = {"pendingReplica": {"name": "grove-0", "reason": "SeedNotReady"}}
    assert pending_replica({"status": status}) == "grove-0"
    assert pending_replica({"status": {**status, "replicaRecords": {"grove-0": {"retry": {}}}}}) == "grove-0"
    assert pending_replica({"status": {**status, "replicaRecords": {"grove-0": {"established": True}}}}) == ""
    assert pending_replica({}) == ""


@pytest.mark.parametrize("part", ["shoot", "managed seed", "seed", "mark"])
def test_what_is_being_removed_does_not_count(part: str) -> None:
    gone = {"metadata": {"deletionTimestamp": "2026-01-02T03:04:05Z"}}
    seed = a_seed("grove-0")
    match part:
        case "shoot":
            replica = replica_of(merged(SHOOT, gone), None, None, "")
        case "managed seed":
            replica = read(seed, managed_seed=merged(MANAGED_SEED, gone))
        case "seed":
            replica = read(merged(seed, gone))
        case _:
            replica = read(merged(seed, {"metadata": {"annotations": {REMOVAL_ANNOTATION: "garden/grove"}}}))
    assert replica.is_leaving


def test_what_shoots_request_is_used_where_the_gardenlet_reports_no_usage() -> None:
    stated = {"cpu": "4", "memory": "8Gi", "example.com/lb": "3"}
    seed = a_seed("grove-0", status={"allocatable": stated, "usage": {"memory": "1Gi"}})
    requested = {"cpu": 2500, "memory": 5, "gpu": 1}
    shoot = a_shoot("grove-0", "garden")
    usage = replica_of(shoot, None, seed, "", requested).usage
    assert usage == {"cpu": Fraction(5, 2), "memory": Fraction(2**30), "example.com/lb": Fraction(0)}


def test_usage_is_what_the_gardenlet_reports() -> None:
    seed = a_seed("grove-0", status={"usage": {"cpu": "1500m", "memory": "1Gi"}})
    assert read(seed).usage == {"cpu": Fraction(3, 2), "memory": Fraction(2**30)}


def test_amounts_leave_out_what_is_none() -> None:
    assert amounts({"a": 1, "b": "2", "c": "many", "d": None, "e": [1]}) == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("spec", "ordered"), [({}, 1), ({"replicas": 0}, 0), ({"replicas": 7}, 7), ({"replicas": None}, 1)]
)
def test_a_set_without_replicas_has_one(spec: Document, ordered: int) -> None:
    assert ordered_replicas({"spec": spec}) == ordered


def test_owners_are_those_that_control() -> None:
    owner = {"kind": "ManagedSeedSet", "name": "grove", "uid": "1", "controller": True}
    owned: Document = {
        "metadata": {"ownerReferences": [owner, {**owner, "name": "other", "uid": "2", "controller": False}]}
    }
    assert owner_sets(owned) == ["grove"]
    assert (is_controlled_by(owned, "1"), is_controlled_by(owned, "2")) == (True, False)
    assert owner_sets({"metadata": {}}) == []


def test_the_sets_condition_says_why_its_shoot_finds_no_seed() -> None:
    condition = a_condition("ReplicaUnschedulable", message="no host seed")
    assert unschedulable_message({"status": {"conditions": [condition]}}) == "no host seed"
    assert unschedulable_message({"status": {"conditions": [{**condition, "status": "False"}]}}) == ""
    assert unschedulable_message({}) == ""


def stored(**changes: Any) -> Document:
    return merged(an_autoscaler(), {"metadata": {"generation": 3}, **changes})


def condition(document: Document, kind: str) -> tuple[str, str]:
    found = get_condition(conditions_of(document), kind)
    assert found is not None
    return found["status"], found["reason"]


def test_the_status_tells_and_remembers() -> None:
    seeds = a_set(5, shoots=8, pending=0)
    driver = AutoscalerDriver(a_spec(behavior={}))
    written = with_decision(stored(), driver.reconcile_once(seeds), seeds, driver.now)
    status = dict(written["status"])
    del status["conditions"]
    assert status == {
        "observedGeneration": 3,
        "currentReplicas": 5,
        "desiredReplicas": 5,
        "pendingShoots": 0,
        "currentMetrics": [
            {
                "type": "Resource",
                "resource": {
                    "name": "shoots",
                    "current": {"averageValue": "1600m", "averageUtilization": 16, "value": "8"},
                },
            }
        ],
        "targetReplicas": 5,
        "recommendedReplicas": 1,
        "recommendations": [{"replicas": 5, "until": "2026-01-02T03:04:05.000000Z"}],
    }
    assert condition(written, "AbleToScale") == ("True", "ScaleDownStabilized")
    assert condition(written, "ScalingActive") == ("True", "ValidMetricFound")
    assert condition(written, "ScalingLimited") == ("False", "DesiredWithinRange")
    read_again = SeedAutoscaler.from_document(written).status
    assert (read_again.recommendations, read_again.target_replicas) == (driver.memory.recommendations, 5)


def test_nothing_new_is_nothing_to_write() -> None:
    seeds = a_set(2, shoots=16)
    driver = AutoscalerDriver(a_spec())
    written = with_decision(stored(), driver.reconcile_once(seeds), seeds, driver.now)
    assert with_decision(written, driver.reconcile_once(seeds, after=3600), seeds, driver.now) == written


def test_what_is_remembered_no_longer_goes_and_what_others_wrote_stays() -> None:
    seeds = a_set(1, shoots=20)
    driver = AutoscalerDriver(a_spec())
    written = with_decision(stored(status={"note": "mine"}), driver.reconcile_once(seeds), seeds, driver.now)
    assert written["status"]["rescale"] == {
        "fromReplicas": 1,
        "toReplicas": 3,
        "reason": "utilization of shoots is 200%, above the target of 80%",
    }
    assert condition(written, "AbleToScale") == ("True", "SucceededGetScale")
    seeds = a_set(1, building=2, shoots=20)
    written = with_decision(written, driver.reconcile_once(seeds, after=1), seeds, driver.now)
    assert "rescale" not in written["status"]
    assert (written["status"]["note"], written["status"]["lastScaleTime"]) == ("mine", "2026-01-02T03:04:06Z")
    assert condition(written, "AbleToScale") == ("True", "SucceededRescale")


def test_a_failed_change_stays_told_until_one_succeeds() -> None:
    seeds = a_set(1, shoots=20)
    driver = AutoscalerDriver(a_spec())
    failed = with_failure(
        with_decision(stored(), driver.reconcile_once(seeds), seeds, driver.now), "FailedUpdateScale", "no", START
    )
    assert condition(failed, "AbleToScale") == ("False", "FailedUpdateScale")
    assert failed["status"]["rescale"]["toReplicas"] == 3
    again = with_decision(failed, driver.reconcile_once(seeds, after=15), seeds, driver.now)
    assert condition(again, "AbleToScale") == ("False", "FailedUpdateScale")
