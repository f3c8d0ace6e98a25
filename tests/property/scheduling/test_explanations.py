"""What is explained is what is decided: funnels end at the decision, records say the same, remedies help."""

import json
import os
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from gardenbus.cli.simulate.scheduling import qualified_name, seeds_of, simulate, snapshot_of
from gardenbus.common.api.document import Document, opened_lists
from gardenbus.common.api.garden.seeds import EMERGENCY_STOP
from gardenbus.common.api.garden.shoots import DEFAULT_SCHEDULER, Shoot
from gardenbus.common.errors import InvalidResource
from gardenbus.scheduler.domain.explain.decision_record import decode_record, encode_record
from gardenbus.scheduler.domain.explain.explanation import explain
from gardenbus.scheduler.domain.explain.seed_checks import checks_of_seed, schedulable_on
from gardenbus.scheduler.domain.explain.suggestions import single_rejections, suggestions_for
from gardenbus.scheduler.domain.explain.unschedulable_reasons import unschedulable_reasons
from gardenbus.scheduling.assignment import decide
from gardenbus.scheduling.equivalence_classes import SchedulingRequest, request_of, skip_reason
from gardenbus.scheduling.filters.capacity import CAPACITY
from gardenbus.scheduling.filters.table import FILTERS
from gardenbus.scheduling.filters.taints import TAINTS
from gardenbus.scheduling.results import Assignment, Unschedulable
from gardenbus.scheduling.snapshot import Snapshot
from tests.support.generated_landscapes import landscapes, strategy_names
from tests.support.golden_decisions import expectations, manifests, required_expectations

EXAMPLES = int(os.environ.get("GARDENBUS_EXAMPLES", "60"))
pytestmark = pytest.mark.timeout(max(150, EXAMPLES))  # a second an example, when many are asked for


def pending_in(documents: list[Document]) -> list[tuple[Document, Shoot | None]]:
    """The shoots without seed, in order; None for one that cannot be read."""
    found: list[tuple[Document, Shoot | None]] = []
    for document in documents:
        if document.get("kind") == "Shoot" and not document["spec"].get("seedName"):
            try:
                found.append((document, Shoot.from_document(document)))
            except InvalidResource:
                found.append((document, None))
    return found


def check_that_explanations_are_the_decisions(documents: list[Document], strategy: str) -> list[Document]:
    """Explain each pending shoot just before it is placed; returns what simulating says of all."""
    placements = {each.shoot: each for each in simulate(documents, strategy)}
    snapshot = snapshot_of(documents, strategy)
    for document, shoot in pending_in(documents):
        decided = placements[qualified_name(document)]
        if shoot is None or skip_reason(shoot, DEFAULT_SCHEDULER):
            assert decided.seed is None
            continue
        request = request_of(shoot)
        check_one(request, snapshot, decided.seed, decided.message)
        if decided.seed is not None and decided.seed not in seeds_of(document):  # else it counts there already
            snapshot.assume(decided.seed)
    return [msgspec.to_builtins(each) for each in placements.values()]


def check_one(request: SchedulingRequest, snapshot: Snapshot, seed: str | None, message: str | None) -> None:
    explanation = explain(request, snapshot)
    seeds = len(snapshot.landscape.seeds)
    ends = [step.left for step in explanation.funnel][-1:] or [seeds]
    assert ends == [len(explanation.ranking)]
    assert [step.left for step in explanation.funnel] == [
        seeds - sum(step.rejected for step in explanation.funnel[: number + 1])
        for number in range(len(explanation.funnel))
    ]
    if isinstance(explanation.outcome, Unschedulable):
        assert (seed, message) == (None, explanation.outcome.message)
        assert not explanation.ranking
        assert suggestions_for(request, snapshot)
        return
    assert (seed, message) == (explanation.outcome.seed, None)
    assert explanation.ranking[0].seed == seed
    check_record(explanation.outcome, explanation.ranking, explanation.funnel)


def check_record(placement: Assignment, ranking: Any, funnel: Any) -> None:
    recorded = decode_record(encode_record(placement, "default-scheduler"), "2026-01-02T03:04:05Z")
    assert recorded is not None
    assert (recorded["seed"], recorded["used"]) == (ranking[0].seed, ranking[0].usage)
    assert (recorded["distance"], recorded["allocatable"]) == (ranking[0].distance, ranking[0].capacity)
    filters = [rule.name for rule in FILTERS]
    recorded_steps = [(step["rule"], step["left"]) for step in recorded["funnel"] if step["rule"] in filters]
    assert recorded_steps == [(step.rule, step.left) for step in funnel if step.rule in filters]
    following = recorded["runnerUp"]
    second = next((each for each in ranking[1:] if each.distance == ranking[0].distance), None)
    if following is not None and second is not None and second.distance is not None:
        assert following == {"seed": second.seed, "used": second.usage}
    assert recorded["left"] >= len(ranking)


@pytest.mark.parametrize("expected", expectations(), ids=lambda expected: expected["landscape"])
def test_on_every_golden_landscape_the_funnels_end_is_the_decision(expected: dict[str, Any]) -> None:
    documents = list(opened_lists([manifests(expected)]))
    decided = check_that_explanations_are_the_decisions(documents, expected["strategy"])
    assert {each["shoot"]: each["seed"] for each in decided} == {
        each["shoot"]: each["seed"] for each in expected["placements"]
    }


def test_the_golden_landscapes_are_at_hand() -> None:
    assert required_expectations()


@settings(max_examples=EXAMPLES, deadline=None)
@given(landscapes(), strategy_names)
def test_on_every_generated_landscape_the_funnels_end_is_the_decision(documents: list[Document], strategy: str) -> None:
    check_that_explanations_are_the_decisions(documents, strategy)


@settings(max_examples=EXAMPLES, deadline=None)
@given(landscapes(), strategy_names)
def test_what_rejects_a_seed_is_among_all_that_speaks_against_it(documents: list[Document], strategy: str) -> None:
    snapshot = snapshot_of(documents, strategy)
    for _, shoot in pending_in(documents):
        assert shoot is not None
        request = request_of(shoot)
        reasons = unschedulable_reasons(request, snapshot)
        if not reasons:
            continue
        for rejection in explain(request, snapshot).rejections:
            assert rejection.rule in {each.rule for each in reasons[rejection.seed]}


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(landscapes(), strategy_names)
def test_one_change_is_enough_where_one_rule_refuses(documents: list[Document], strategy: str) -> None:
    snapshot = snapshot_of(documents, strategy)
    tried = 0
    for _, shoot in pending_in(documents):
        assert shoot is not None
        request = request_of(shoot)
        if not isinstance(decide(request, snapshot), Unschedulable):
            continue
        for rule, rejections in single_rejections(unschedulable_reasons(request, snapshot)).items():
            for rejection in rejections:
                changed = opened(documents, rejection.seed, rule)
                if changed is not None:
                    tried += 1
                    assert isinstance(decide(request, snapshot_of(changed, strategy)), Assignment)
    assume(tried)


def opened(documents: list[Document], seed: str, rule: str) -> list[Document] | None:
    """The landscape after the one change that a rule waits for; None for rules that are not tried."""
    changed: list[Document] = json.loads(json.dumps(documents))
    for document in changed:
        if (document["kind"], document["metadata"]["name"]) != ("Seed", seed):
            continue
        match rule:
            case "capacity":
                document["status"]["allocatable"].pop("shoots")
            case "emergency-stop":
                del document["metadata"]["annotations"][EMERGENCY_STOP]
            case "usable":
                document["spec"]["settings"]["scheduling"]["visible"] = True
                document["metadata"].pop("deletionTimestamp", None)
                kinds = ("GardenletReady", "BackupBucketsReady")
                document["status"]["conditions"] = [{"type": kind, "status": "True"} for kind in kinds]
                document["status"]["lastOperation"] = {"type": "Reconcile"}
            case _ if rule == TAINTS.name:
                document["spec"]["taints"] = []
            case _:
                return None
    return changed


@settings(max_examples=EXAMPLES, deadline=None)
@given(landscapes(), st.data(), strategy_names)
def test_a_seed_could_take_exactly_those_that_would_be_placed_if_only_it_were_usable(
    documents: list[Document], data: st.DataObject, strategy: str
) -> None:
    names = sorted({each["metadata"]["name"] for each in documents if each["kind"] == "Seed"})
    assume(names)
    seed = data.draw(st.sampled_from(names))
    snapshot = snapshot_of(documents, strategy)
    candidate = snapshot.landscape.seeds_by_name[seed]
    requests = [request_of(shoot) for _, shoot in pending_in(documents) if shoot is not None]
    could = schedulable_on(requests, seed, snapshot)
    rules = checks_of_seed(candidate, snapshot.usage.get(seed, 0))
    for request, takes in zip(requests, could, strict=True):
        rejected = {each.seed: each.rule for each in explain(request, snapshot).rejections}
        is_rejected_for_itself = rejected.get(seed) in ("usable", "emergency-stop", CAPACITY.name)
        if all(rule.ok for rule in rules):
            assert not is_rejected_for_itself
            assert takes == (seed not in rejected)
        elif seed in rejected:
            assert is_rejected_for_itself or not takes
