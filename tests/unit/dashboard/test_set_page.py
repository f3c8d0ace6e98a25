"""A set's page: its replicas as seeds, and what its controllers do next."""

from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.dashboard.domain.set_outlook import next_of_autoscaler, next_of_set, rollout_of
from tests.support.builders import a_condition, a_seed, merged
from tests.support.dashboards import Dashboard
from tests.unit.dashboard.test_tree import managed_seed, on


def a_set(wanted: int, **status: Any) -> Document:
    there = {"replicas": 2, "readyReplicas": 2, "updatedReplicas": 2, "nextReplicaNumber": 5}
    metadata = {"name": "grove", "namespace": "garden"}
    return {"kind": "ManagedSeedSet", "metadata": metadata, "spec": {"replicas": wanted}, "status": there | status}


def an_autoscaler(desired: int | None, *conditions: Document, current: int = 2) -> Document:
    numbers = {} if desired is None else {"desiredReplicas": desired, "currentReplicas": current, "pendingShoots": 3}
    return {
        "kind": "SeedAutoscaler",
        "metadata": {"name": "grove", "namespace": "garden"},
        "spec": {"scaleTargetRef": {"name": "grove"}, "minReplicas": 1, "maxReplicas": 4},
        "status": {**numbers, "conditions": list(conditions)},
    }


@pytest.mark.parametrize(
    ("seed_set", "words"),
    [
        (a_set(2), "nothing: as many seeds as wanted"),
        (a_set(3), "makes grove-5: 2 of 3 seeds"),
        (a_set(3, pendingReplica={"name": "grove-4", "reason": "SeedNotReady"}), "grove-4: SeedNotReady"),
        (a_set(1), "removes a seed: 2 are there, 1 wanted"),
        (
            a_set(1, conditions=[a_condition("ScaleInBlocked", message="no replica is empty")]),
            "as soon as it can: no replica is empty",
        ),
        (a_set(2, updatedReplicas=1), "rolls its template out: 1 of 2"),
    ],
)
def test_what_a_set_does_next_follows_its_controller(seed_set: Document, words: str):
    assert words in next_of_set(seed_set)


def test_a_rollout_is_done_when_all_seeds_have_the_template():
    assert rollout_of(a_set(2)).is_done
    assert not rollout_of(a_set(2, updatedReplicas=1)).is_done


def test_an_autoscaler_says_why_and_what_keeps_it():
    assert next_of_autoscaler(an_autoscaler(None)) == ["it has not decided yet"]
    growing = next_of_autoscaler(an_autoscaler(3))
    assert growing[0].startswith("wants 3, between 1 and 4: 3 of its shoots wait for a seed")
    assert growing[-1] == "the set goes from 2 to 3 seeds"
    assert any("maxReplicas is above 4" in each for each in next_of_autoscaler(an_autoscaler(4)))
    unable = a_condition("AbleToScale", status="False", message="the set is gone")
    assert "it cannot scale: the set is gone" in next_of_autoscaler(an_autoscaler(2, unable))


async def test_replicas_are_shown_as_seeds_with_their_shoots_and_hosts():
    dashboard = Dashboard()
    await dashboard.serve_api()
    hosting = on("earth", "grove-0") | {"metadata": {"name": "grove-0", "namespace": "garden"}}
    silent = merged(a_seed("grove-0"), {"status": {"conditions": [a_condition("GardenletReady", status="Unknown")]}})
    dashboard.put(silent, a_set(2), an_autoscaler(3), managed_seed("grove-0"), managed_seed("grove-1"), hosting)
    dashboard.put(on("grove-0", "apollo"), on("grove-0", "tantalus", "Failed"))
    dashboard.replies["get.managedseedset.garden.grove"] = a_set(2)
    dashboard.replies["get.seedautoscaler.garden.grove"] = an_autoscaler(3)
    page = (await dashboard.get("/api/sets/garden/grove")).json()
    first, second = page["replicas"]
    assert (first["name"], first["tone"], first["seed"]["used"], first["troubles"]) == ("grove-0", "bad", 2, 1)
    assert (first["host"], first["hostWords"]) == ("earth", "succeeded on earth")
    assert (second["seed"], second["words"]) == (None, "has not registered yet")
    assert page["autoscalers"][0]["why"][0].startswith("wants 3")
    assert page["rollout"]["isDone"]
    assert (await dashboard.get("/api/sets/garden/none")).status == 404
