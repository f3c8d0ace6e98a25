"""Distance of regions by their names, against an oracle of its own."""

from hypothesis import given
from hypothesis import strategies as st

from gardenbus.scheduling.scores.region_distance import FARTHEST, distance_by_name
from tests.support.naive_scheduler import region_distance

NAMES = st.text("abeu-1northsw:", max_size=14)


@given(NAMES, NAMES)
def test_regions_are_as_far_apart_as_their_names_differ(one: str, other: str) -> None:
    assert distance_by_name(one, other) == region_distance(one, other)


def test_names_that_are_too_far_apart_by_their_length_alone_are_not_compared() -> None:
    assert distance_by_name("eu-west-1", "x" * 10_000_000) > FARTHEST
