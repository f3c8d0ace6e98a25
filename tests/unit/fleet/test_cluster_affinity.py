"""Who matches what a policy requires, and how much of what it prefers a cluster is worth."""

from math import inf
from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.fleet.cycle import decide
from gardenbus.fleet.cycle_result import CycleResult, UnexpectedState
from gardenbus.fleet.fleet import Fleet
from gardenbus.fleet.properties import PropertyTable, check_name, interpolate
from tests.support.fleets import NOW, a_member, a_placement, a_snapshot, an_agent

COUNT = "kubernetes-fleet.io/node-count"
CPU = "resources.kubernetes-fleet.io/available-cpu"


@pytest.mark.parametrize(
    ("order", "weight", "low", "high", "expected"),
    [
        ("Descending", 100, 4, 8, 0),
        ("Descending", 100, 2, 4, 100),
        ("Descending", 7, 2, 7, 3),
        ("Descending", 8, 2, 7, 3),
        ("Ascending", 100, 4, 8, 100),
        ("Ascending", 100, 2, 4, 0),
        ("Ascending", 8, 2, 7, 5),
        ("Ascending", 7, 2, 7, 4),
        ("Descending", 100, 4, 4, 0),
        ("Ascending", 100, 4, 4, 0),
        ("Descending", 1, 3, 5, 1),
        ("Descending", -1, 3, 5, -1),
    ],
)
def test_a_weight_is_interpolated_and_rounded_half_away_from_zero(
    order: str, weight: int, low: float, high: float, expected: int
) -> None:
    assert interpolate(4, low, high, order=order, weight=weight) == expected


@pytest.mark.parametrize(
    ("order", "low", "high"),
    [("Descending", 5, 8), ("Ascending", 1, 3), ("Ascending", 8, 2), ("Ascending", -inf, 8), ("Sideways", 2, 8)],
)
def test_what_cannot_be_interpolated_is_an_error(order: str, low: float, high: float) -> None:
    with pytest.raises(UnexpectedState):
        interpolate(4, low, high, order=order, weight=10)


@pytest.mark.parametrize("name", ["available-", "-cpu", "a-b-c", "unknown-cpu", "cpu"])
def test_an_impossible_resource_property_is_an_error(name: str) -> None:
    with pytest.raises(UnexpectedState):
        check_name(f"resources.kubernetes-fleet.io/{name}")


@pytest.mark.parametrize(("kind", "expected"), [("total", 8), ("allocatable", 6), ("available", 2)])
def test_a_resource_property_is_read_from_the_usage(kind: str, expected: int) -> None:
    usage = {"capacity": {"cpu": "8"}, "allocatable": {"cpu": "6"}, "available": {"cpu": "2000m"}}
    table = PropertyTable([a_member("a", resourceUsage=usage)])
    assert list(table.column(f"resources.kubernetes-fleet.io/{kind}-cpu").by_value) == [expected]


def test_a_known_kind_of_resource_that_a_cluster_does_not_have_is_no_value() -> None:
    assert PropertyTable([a_member("a")]).column(CPU).present == 0


@pytest.mark.parametrize(
    ("operator", "bound", "expected"),
    [
        ("Gt", "3", "cd"),
        ("Ge", "3", "bcd"),
        ("Lt", "3", "a"),
        ("Le", "3000m", "ab"),
        ("Eq", "3000m", "b"),
        ("Ne", "3", "acd"),
    ],
)
def test_properties_are_compared_as_quantities_and_who_lacks_one_never_matches(
    operator: str, bound: str, expected: str
) -> None:
    values = {"a": "2", "b": "3", "c": "4", "d": "1k"}
    fleet = [a_member(name, properties={COUNT: value}) for name, value in values.items()] + [a_member("without")]
    cycle = _all(fleet, _property(COUNT, operator, bound))
    assert "".join(pick.cluster for pick in cycle.creations) == expected


@pytest.mark.parametrize(
    "expression",
    [
        {"name": COUNT, "operator": "Near", "values": ["3"]},
        {"name": COUNT, "operator": "Gt", "values": ["three"]},
        {"name": COUNT, "operator": "Gt", "values": ["3", "4"]},
        {"name": COUNT, "operator": "Gt", "values": []},
        {"name": "resources.kubernetes-fleet.io/free-cpu", "operator": "Gt", "values": ["3"]},
    ],
)
def test_a_comparison_without_meaning_ends_the_cycle(expression: Document) -> None:
    with pytest.raises(UnexpectedState):
        _all([a_member("a", properties={COUNT: "3"})], {"propertySelector": {"matchExpressions": [expression]}})


def test_a_comparison_that_nobody_reaches_is_no_error() -> None:
    impossible = {"propertySelector": {"matchExpressions": [{"name": COUNT, "operator": "Near", "values": ["x"]}]}}
    assert not _all([a_member("a")], impossible).creations
    assert [pick.cluster for pick in _all([a_member("a")], {}, impossible).creations] == ["a"]
    assert not _all([a_member("a", properties={COUNT: "3"})], {**_labels(env="prod"), **impossible}).creations


def test_a_cluster_whose_property_is_no_quantity_ends_the_cycle() -> None:
    with pytest.raises(UnexpectedState, match="cluster a"):
        _all([a_member("a", properties={COUNT: "many"})], _property(COUNT, "Gt", "3"))


def test_an_invalid_label_selector_ends_the_cycle() -> None:
    selector: Document = {"labelSelector": {"matchExpressions": [{"key": "env", "operator": "Around", "values": []}]}}
    with pytest.raises(UnexpectedState, match="operator"):
        _all([a_member("a")], selector)


def test_one_of_the_terms_must_match_and_within_a_term_all_of_it() -> None:
    fleet = [
        a_member("a", {"env": "prod"}, properties={COUNT: "3"}),
        a_member("b", {"env": "prod"}, properties={COUNT: "9"}),
        a_member("c", {"env": "dev"}, properties={COUNT: "9"}),
        a_member("d", {"env": "test"}),
    ]
    both = {**_labels(env="prod"), **_property(COUNT, "Gt", "5")}
    assert [pick.cluster for pick in _all(fleet, both, _labels(env="test")).creations] == ["b", "d"]


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        ({"key": "env", "operator": "In", "values": ["prod", "dev"]}, "ab"),
        ({"key": "env", "operator": "NotIn", "values": ["prod"]}, "bc"),
        ({"key": "env", "operator": "Exists"}, "ab"),
        ({"key": "env", "operator": "DoesNotExist"}, "c"),
    ],
)
def test_labels_are_selected_as_kubernetes_does(requirement: Document, expected: str) -> None:
    fleet = [a_member("a", {"env": "prod"}), a_member("b", {"env": "dev"}), a_member("c")]
    cycle = _all(fleet, {"labelSelector": {"matchExpressions": [requirement]}})
    assert "".join(pick.cluster for pick in cycle.creations) == expected


def test_an_empty_list_of_terms_requires_nothing() -> None:
    assert len(_all([a_member("a"), a_member("b")]).creations) == 2


def test_preferences_are_summed_and_labels_give_the_full_weight() -> None:
    fleet = [a_member("a", {"env": "prod", "disk": "ssd"}), a_member("b", {"env": "prod"}), a_member("c")]
    cycle = _best(fleet, 3, (40, _labels(env="prod")), (-10, _labels(disk="ssd")), (0, _labels(env="prod")))
    assert _scores(cycle) == {"b": 40, "a": 30, "c": 0}


def test_a_sorter_grades_by_the_values_of_the_whole_fleet_even_of_those_that_cannot_be_chosen() -> None:
    sick = a_member("sick", properties={COUNT: "0"}, agent=an_agent(heartbeat=-1000))
    fleet = [sick, a_member("a", properties={COUNT: "5"}), a_member("b", properties={COUNT: "10"}), a_member("c")]
    assert _scores(_best(fleet, 3, (100, _sorter("Descending")))) == {"b": 100, "a": 50, "c": 0}
    assert _scores(_best(fleet, 3, (100, _sorter("Ascending")))) == {"a": 50, "b": 0, "c": 0}


def test_a_sorter_counts_only_where_the_labels_match() -> None:
    fleet = [a_member("a", {"env": "prod"}, properties={COUNT: "5"}), a_member("b", properties={COUNT: "10"})]
    assert _scores(_best(fleet, 2, (100, {**_labels(env="prod"), **_sorter("Ascending")}))) == {"a": 100, "b": 0}


def test_a_sorter_by_a_property_that_is_the_same_everywhere_is_worth_nothing() -> None:
    fleet = [a_member("a", properties={COUNT: "5"}), a_member("b", properties={COUNT: "5000m"})]
    assert _scores(_best(fleet, 2, (100, _sorter("Descending")))) == {"b": 0, "a": 0}


def test_a_sorter_by_a_property_that_is_no_quantity_somewhere_ends_the_cycle() -> None:
    fleet = [a_member("a", properties={COUNT: "5"}), a_member("b", {"x": "y"}, properties={COUNT: "?"})]
    with pytest.raises(UnexpectedState):
        _best(fleet, 1, (100, {"labelSelector": {"matchLabels": {"none": "such"}}, **_sorter("Descending")}))


def test_a_sorter_by_a_property_too_great_for_a_float_ends_the_cycle() -> None:
    fleet = [a_member("a", properties={COUNT: "1e999"}), a_member("b", properties={COUNT: "1"})]
    with pytest.raises(UnexpectedState):
        _best(fleet, 1, (100, _sorter("Descending")))


def test_preferences_of_a_pick_all_policy_are_ignored() -> None:
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 9, "preference": _labels(a="b")}]}
    policy = {"placementType": "PickAll", "affinity": {"clusterAffinity": preferred}}
    fleet = Fleet.of([a_member("a", {"a": "b"})], NOW)
    assert _scores(decide(a_placement(policy), a_snapshot(policy), fleet, [], NOW)) == {"a": 0}


def _labels(**labels: str) -> Document:
    return {"labelSelector": {"matchLabels": labels}}


def _property(name: str, operator: str, bound: str) -> Document:
    return {"propertySelector": {"matchExpressions": [{"name": name, "operator": operator, "values": [bound]}]}}


def _sorter(order: str) -> Document:
    return {"propertySorter": {"name": COUNT, "sortOrder": order}}


def _all(clusters: list[Any], *terms: Document) -> CycleResult:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"clusterSelectorTerms": list(terms)}}
    policy: Document = {"placementType": "PickAll", "affinity": {"clusterAffinity": required}}
    return decide(a_placement(policy), a_snapshot(policy), Fleet.of(clusters, NOW), [], NOW)


def _best(clusters: list[Any], number: int, *preferences: tuple[int, Document]) -> CycleResult:
    terms = [{"weight": weight, "preference": preference} for weight, preference in preferences]
    affinity = {"clusterAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}
    policy: Document = {"placementType": "PickN", "numberOfClusters": number, "affinity": affinity}
    return decide(a_placement(policy), a_snapshot(policy), Fleet.of(clusters, NOW), [], NOW)


def _scores(cycle: CycleResult) -> dict[str, int]:
    return {
        pick.cluster: pick.decision.cluster_score.affinity_score
        for pick in cycle.creations
        if pick.decision.cluster_score
    }
