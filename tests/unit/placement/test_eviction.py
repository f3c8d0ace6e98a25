"""Which evictions are valid, and which are carried out within a disruption budget."""

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.fleet.placement_parts import DisruptionBudget, Eviction, ResourceBinding
from gardenbus.placement.domain.eviction import EvictionResult, assess_eviction, is_terminal
from tests.support.fleets import a_placement, at
from tests.support.rolling import FAILED, PENDING, a_budget, an_eviction, on_its_way, scheduled, unscheduled

THREE: Document = {"placementType": "PickN", "numberOfClusters": 3}


def assessed(
    *bindings: ResourceBinding, policy: Document | None = None, budget: Document | None = None, cluster: str = "a"
) -> EvictionResult:
    return assess_eviction(
        Eviction.from_document(an_eviction("e", cluster)),
        a_placement(policy if policy is not None else THREE),
        bindings,
        DisruptionBudget.from_document(budget) if budget else None,
    )


def ready(names: str) -> list[ResourceBinding]:
    return [on_its_way(name) for name in names]


def test_without_a_placement_it_is_invalid() -> None:
    result = assess_eviction(Eviction.from_document(an_eviction("e", "a")), None, (), None)
    assert (result.is_valid, result.binding) == (False, "")


def test_of_a_placement_that_leaves_it_is_invalid() -> None:
    leaving = a_placement(THREE, metadata={"deletionTimestamp": at()})
    assert not assess_eviction(Eviction.from_document(an_eviction("e", "a")), leaving, ready("a"), None).is_valid


def test_of_fixed_clusters_it_is_invalid() -> None:
    assert not assessed(*ready("a"), policy={"placementType": "PickFixed", "clusterNames": ["a"]}).is_valid


def test_without_a_binding_or_with_two_it_is_invalid() -> None:
    assert not assessed(*ready("b")).is_valid
    assert not assessed(on_its_way("a"), on_its_way("a", name="again")).is_valid


def test_who_leaves_already_is_evicted() -> None:
    result = assessed(unscheduled("a", deleting=-1))
    assert (result.is_valid, result.is_executed, result.binding) == (True, True, "")


@pytest.mark.parametrize("binding", [scheduled("a"), unscheduled("a", previous="Scheduled")])
def test_what_is_not_placed_cannot_be_taken_off(binding: ResourceBinding) -> None:
    result = assessed(binding)
    assert (result.is_valid, result.is_executed) == (True, False)


def test_without_a_budget_it_is_allowed() -> None:
    assert assessed(*ready("abc")).binding == "web-a"


def test_who_failed_goes_whatever_the_budget() -> None:
    result = assessed(on_its_way("a", available=FAILED), budget=a_budget(minAvailable=3))
    assert result.binding == "web-a"


@pytest.mark.parametrize(
    ("budget", "allowed"),
    [
        ({"maxUnavailable": 0}, False),
        ({"maxUnavailable": 1}, True),
        ({"maxUnavailable": "1%"}, True),
        ({"maxUnavailable": "0%"}, False),
        ({"minAvailable": 3}, False),
        ({"minAvailable": 2}, True),
        ({"minAvailable": "67%"}, False),
        ({"minAvailable": "66%"}, True),
    ],
)
def test_a_budget_lets_go_what_it_says_percent_rounded_up(budget: Document, allowed: bool) -> None:
    result = assessed(*ready("abc"), budget=a_budget(**budget))
    assert result.is_valid
    assert result.is_executed is allowed
    assert result.binding == ("web-a" if allowed else "")


def test_what_is_not_available_counts_against_the_budget() -> None:
    bindings = [on_its_way("a"), on_its_way("b"), on_its_way("c", available=PENDING)]
    assert not assessed(*bindings, budget=a_budget(maxUnavailable=1)).is_executed
    assert assessed(*bindings, budget=a_budget(maxUnavailable=2)).is_executed
    assert not assessed(*bindings, budget=a_budget(minAvailable=2)).is_executed


@pytest.mark.parametrize("budget", [{"maxUnavailable": 2}, {"minAvailable": "10%"}])
def test_of_placements_everywhere_a_budget_is_a_number_of_available_ones(budget: Document) -> None:
    result = assessed(*ready("abc"), policy={"placementType": "PickAll"}, budget=a_budget(**budget))
    assert (result.is_valid, result.is_executed) == (True, False)
    fine = assessed(*ready("abc"), policy={"placementType": "PickAll"}, budget=a_budget(minAvailable=2))
    assert fine.binding == "web-a"


def test_it_is_judged_once() -> None:
    document = an_eviction("e", "a")
    assert not is_terminal(Eviction.from_document(document))
    document["status"] = {"conditions": [{"type": "Valid", "status": "True"}]}
    assert not is_terminal(Eviction.from_document(document))
    document["status"] = {"conditions": [{"type": "Valid", "status": "False"}]}
    assert is_terminal(Eviction.from_document(document))
    document["status"] = {"conditions": [{"type": "Executed", "status": "False"}]}
    assert is_terminal(Eviction.from_document(document))
