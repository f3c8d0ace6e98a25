"""Fleets to measure with have the proportions that are promised."""

from collections import Counter

import pytest

from gardenbus.bench.manifests.fleet import (
    CLUSTERS_WANTED,
    LEAST_CLUSTERS,
    REGION_LABEL,
    RING_LABEL,
    TIER_LABEL,
    bindings_expected,
    clusters,
    placement,
    placement_cases,
    ring_of,
    rings,
    tier_wanted,
)
from gardenbus.common.api.fleet.member_clusters import MemberCluster
from gardenbus.common.api.fleet.placements import Placement
from gardenbus.fleet.eligibility import ineligibility_reason

SEEN_AT = "2026-01-02T03:04:05Z"


def labels(count: int, label: str) -> Counter[str]:
    return Counter(each["metadata"]["labels"].get(label, "") for each in clusters(count, SEEN_AT))


@pytest.mark.parametrize("count", [LEAST_CLUSTERS, 60, 500, 2000])
def test_rings_have_ten_to_twenty_clusters_and_labels_say_so(count: int):
    sizes = {ring.name: ring.size for ring in rings(count)}
    assert all(10 <= size <= 20 for size in sizes.values())
    announced = labels(count, RING_LABEL)
    assert announced.pop("", 0) < 20
    assert announced == sizes


@pytest.mark.parametrize("count", [LEAST_CLUSTERS, 500])
def test_regions_and_tiers_have_room_for_what_is_wanted(count: int):
    assert min(labels(count, REGION_LABEL).values()) >= CLUSTERS_WANTED
    assert min(labels(count, TIER_LABEL).values()) >= CLUSTERS_WANTED
    assert len(labels(count, REGION_LABEL)) == 3


def test_there_are_as_many_placements_of_each_sort_and_one_over_all():
    requested = placement_cases(3000)
    assert Counter(one.sort for one in requested) == {"ring": 1000, "affinity": 1000, "spread": 1000, "all": 1}
    assert len({one.name for one in requested}) == 3001


def test_what_is_expected_of_a_placement_is_what_it_asks_for():
    for one in placement_cases(40):
        policy = Placement.from_document(placement(one, 500)).policy
        if policy.placement_type == "PickN":
            assert bindings_expected(one, 500) == policy.number_of_clusters == CLUSTERS_WANTED
        required = policy.cluster_affinity.required
        terms = [each.label_selector for each in required.cluster_selector_terms] if required else []
        requests_of = {
            "all": [],
            "spread": [],
            "ring": [{"matchLabels": {RING_LABEL: ring_of(one, 500).name}}],
            "affinity": [{"matchLabels": {TIER_LABEL: tier_wanted(one)}}],
        }
        assert terms == requests_of[one.sort]


def test_all_clusters_are_eligible_while_they_are_heard():
    members = [MemberCluster.from_document(each) for each in clusters(LEAST_CLUSTERS, SEEN_AT)]
    assert {ineligibility_reason(each, now=1767323045.0) for each in members} == {None}
