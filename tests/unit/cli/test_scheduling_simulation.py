import pytest

from gardenbus.cli.simulate.scheduling import simulate
from gardenbus.common.api.document import Document
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot

LANDSCAPE = [a_seed("a", shoots="1"), a_seed("b", shoots="1"), a_cloudprofile(), a_project()]


def test_each_placement_counts_for_the_next() -> None:
    placements = simulate([*LANDSCAPE, a_shoot("one"), a_shoot("two"), a_shoot("three")])
    assert [(placement.shoot, placement.seed) for placement in placements] == [
        ("garden-dev/one", "a"),
        ("garden-dev/two", "b"),
        ("garden-dev/three", None),
    ]


def test_placed_shoots_count_on_both_of_their_seeds_and_are_not_listed() -> None:
    migrating = a_shoot("old", spec={"seedName": "a"}, status={"seedName": "b"})
    placements = simulate([*LANDSCAPE, migrating, a_shoot("new")])
    assert [(placement.shoot, placement.seed) for placement in placements] == [("garden-dev/new", None)]


UNSCHEDULED: list[Document] = [
    {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
    {"spec": {"schedulerName": "mine"}},
    {"spec": {"provider": {"workers": [{"name": "cp", "controlPlane": {}}]}}},
    {"spec": {"region": 1}},
]


@pytest.mark.parametrize("changes", UNSCHEDULED)
def test_what_is_not_scheduled_is_listed_with_the_reason(changes: Document) -> None:
    (placement,) = simulate([*LANDSCAPE, a_shoot(**changes)])
    assert placement.seed is None
    assert placement.message


def test_a_list_is_opened_and_garbage_passed_over() -> None:
    documents = [{"kind": "List", "items": [*LANDSCAPE, "garbage", a_shoot()]}, {"no": "kind"}]
    assert [placement.seed for placement in simulate(documents)] == ["a"]


def test_an_unknown_strategy_is_an_error() -> None:
    with pytest.raises(ValueError, match="SameRegion, MinimalDistance"):
        simulate([], "Nearest")
