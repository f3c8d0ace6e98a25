"""The scheduler gives the same answer as one written straight from the rules, on every generated landscape."""

import copy
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gardenbus.cli.simulate.scheduling import simulate, snapshot_of
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.seeds import may_unblock
from gardenbus.common.api.garden.shoots import Shoot
from gardenbus.scheduler.domain.explain.explanation import explain
from gardenbus.scheduling.assignment import decide
from gardenbus.scheduling.equivalence_classes import descriptor, equivalence_class, request_from_descriptor, request_of
from gardenbus.scheduling.free_capacity import FreeCapacity
from gardenbus.scheduling.results import Assignment, Unschedulable
from tests.support import naive_scheduler
from tests.support.generated_landscapes import NAMES, landscapes, seeds, shoots, strategy_names
from tests.support.golden_decisions import manifests, required_expectations

EXAMPLES = int(os.environ.get("GARDENBUS_EXAMPLES", "180"))
pytestmark = pytest.mark.timeout(max(150, EXAMPLES))  # a second an example, when many are asked for


@settings(max_examples=EXAMPLES, deadline=None)
@given(landscapes(), strategy_names)
def test_the_scheduler_agrees_with_the_naive_one(documents: list[Document], strategy: str) -> None:
    expected = naive_scheduler.schedule_all(copy.deepcopy(documents), strategy)
    assert {placement.shoot: placement.seed for placement in simulate(documents, strategy)} == expected


@settings(max_examples=EXAMPLES // 3, deadline=None)
@given(landscapes(), strategy_names)
def test_an_explanation_accounts_for_every_seed_and_agrees_with_the_decision(
    documents: list[Document], strategy: str
) -> None:
    snapshot = snapshot_of(documents, strategy)
    for document in documents:
        if document["kind"] != "Shoot":
            continue
        request = request_of(Shoot.from_document(document))
        outcome = decide(request, snapshot)
        explanation = explain(request, snapshot)
        ranked = [ranked.seed for ranked in explanation.ranking]
        rejected = [rejection.seed for rejection in explanation.rejections]
        assert sorted(ranked + rejected) == [seed.name for seed in snapshot.landscape.seeds]
        assert sum(step.rejected for step in explanation.funnel) == len(rejected)
        assert [step.left for step in explanation.funnel][-1:] == ([len(ranked)] if rejected else [])
        assert all(rejection.detail for rejection in explanation.rejections)
        if isinstance(outcome, Assignment):
            assert ranked[0] == outcome.seed
            assert FreeCapacity(snapshot).shoots(request) != 0
        else:
            assert ranked == []
            assert FreeCapacity(snapshot).shoots(request) == 0
            assert outcome.message


@settings(max_examples=EXAMPLES // 3, deadline=None)
@given(shoots(0), shoots(0))
def test_a_class_is_what_a_decision_reads_and_survives_the_store(one: Document, other: Document) -> None:
    request, another = (request_of(Shoot.from_document(document)) for document in (one, other))
    assert request_from_descriptor(descriptor(request)) == request
    assert (equivalence_class(request) == equivalence_class(another)) == (request == another)


@settings(max_examples=EXAMPLES, deadline=None)
@given(landscapes(), st.data(), strategy_names)
def test_no_change_of_a_seed_makes_a_shoot_fit_without_being_a_gain(
    documents: list[Document], data: st.DataObject, strategy: str
) -> None:
    name = data.draw(st.sampled_from(NAMES))
    others = [document for document in documents if (document["kind"], document["metadata"]["name"]) != ("Seed", name)]
    old, new = (data.draw(st.one_of(st.none(), seeds(name))) for _ in range(2))
    before, after = (snapshot_of([*others, *([seed] if seed else [])], strategy) for seed in (old, new))
    for document in others:
        if document["kind"] == "Shoot":
            request = request_of(Shoot.from_document(document))
            if isinstance(decide(request, before), Unschedulable) and isinstance(decide(request, after), Assignment):
                assert may_unblock(old, new)


def test_the_naive_one_is_no_straw_man() -> None:
    for expected in required_expectations():
        placements = naive_scheduler.schedule_all(manifests(expected)["items"], expected["strategy"])
        assert placements == {placement["shoot"]: placement["seed"] for placement in expected["placements"]}
