import copy
import dataclasses

import pytest

from gardenbus.cli.client.summaries import summarize_set, summarize_shoot
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.rows import autoscaler_row, seed_row
from gardenbus.embedded.convergence import not_converged_reason
from tests.support.builders import a_seed, a_shoot

DONE: Document = {
    "metadata": {"generation": 2},
    "spec": {"seedName": "aws-eu1"},
    "status": {"observedGeneration": 2, "lastOperation": {"type": "Create", "state": "Succeeded", "progress": 100}},
}
REJECTED: Document = {"status": {"lastOperation": {"type": "Create", "state": "Pending", "description": "no seed"}}}


@dataclasses.dataclass
class Situation:
    shoots: list[Document]
    census: dict[str, int]
    seeds: list[Document] = dataclasses.field(default_factory=lambda: [a_seed()])
    sets: list[Document] = dataclasses.field(default_factory=list[Document])
    autoscalers: list[Document] = dataclasses.field(default_factory=list[Document])

    def why(self) -> str:
        counts = {"objects.shoot": len(self.shoots), "shoots.pending": 0, "shoots.waiting": 0, "outbox": 0}
        return not_converged_reason(
            census=counts | self.census,
            shoots=[summarize_shoot(shoot) for shoot in self.shoots],
            seeds=[seed_row(seed) for seed in self.seeds],
            sets=[summarize_set(each) for each in self.sets],
            autoscalers=[autoscaler_row(each) for each in self.autoscalers],
            expected_seeds=["aws-eu1"],
        )


def test_reconciled_and_refused_shoots_are_settled():
    shoots = [a_shoot("a", **DONE), a_shoot("b", **REJECTED)]

    assert Situation(shoots, {"shoots.pending": 1, "shoots.waiting": 1}).why() == ""
    assert Situation([], {}).why() == ""


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"generation": 3}},
        {"metadata": {"deletionTimestamp": "2026-01-02T03:04:05Z"}},
        {"status": {"lastOperation": {"state": "Processing"}}},
        {"status": {"lastOperation": {"state": "Error"}}},
        {"status": {"lastOperation": None}},
    ],
)
def test_a_shoot_that_is_not_reconciled_at_its_generation_is_not(change: Document):
    shoot = copy.deepcopy(a_shoot("a", **DONE))
    for part, fields in change.items():
        for name, value in fields.items():
            shoot[part][name] = value

    assert "1 shoots are not done (garden-dev/a" in Situation([shoot], {}).why()


@pytest.mark.parametrize(
    ("census", "words"),
    [
        ({"shoots.pending": 1}, "being decided"),
        ({"shoots.pending": 1, "shoots.waiting": 1, "shoots.waiting_unseen": 1}, "before the landscape changed"),
        ({"shoots.pending": 1, "shoots.waiting": 1, "outbox": 3}, "3 changes"),
        ({"objects.shoot": 2}, "2 shoots are stored, 1 have been announced"),
    ],
)
def test_work_that_is_under_way_is_not_settled(census: dict[str, int], words: str):
    assert words in Situation([a_shoot("a", **REJECTED)], census).why()


def test_a_seed_that_has_not_reported_yet_is_waited_for():
    assert "1 seeds have not reported" in Situation([], {}, seeds=[a_seed(ready=False)]).why()
    assert "1 seeds have not reported" in Situation([], {}, seeds=[]).why()


def a_set(status: Document, *, generation: int = 1, replicas: int | None = 2) -> Document:
    spec = {} if replicas is None else {"replicas": replicas}
    return {
        "kind": "ManagedSeedSet",
        "metadata": {"name": "grove", "generation": generation},
        "spec": spec,
        "status": status,
    }


FULL = {"observedGeneration": 1, "replicas": 2, "readyReplicas": 2}


def test_a_set_with_all_that_it_wants_is_settled():
    assert Situation([], {}, sets=[a_set(FULL)]).why() == ""
    assert Situation([], {}, sets=[a_set({**FULL, "replicas": 1, "readyReplicas": 1}, replicas=None)]).why() == ""


@pytest.mark.parametrize(
    "status",
    [
        {},
        {**FULL, "observedGeneration": 0},
        {**FULL, "readyReplicas": 1},
        {**FULL, "replicas": 3},
        {**FULL, "pendingReplica": {"name": "grove-1", "reason": "ShootReconciling"}},
    ],
)
def test_a_set_that_grows_or_shrinks_is_not(status: Document):
    assert Situation([], {}, sets=[a_set(status)]).why().startswith("the set grove has")


@pytest.mark.parametrize("status", [{}, {"desiredReplicas": 3}])
def test_an_autoscaler_that_wants_something_else_or_has_not_looked_yet_is_not(status: Document):
    autoscaler: Document = {
        "metadata": {"name": "grove-scaler"},
        "spec": {"scaleTargetRef": {"name": "grove"}},
        "status": status,
    }

    situation = Situation([], {}, sets=[a_set(FULL)], autoscalers=[autoscaler])
    assert situation.why() == "the autoscaler grove-scaler has not settled"
    autoscaler["status"] = {"desiredReplicas": 2}
    assert situation.why() == ""
