"""The seed repeats the order of faults; what shall be alone is alone; no two faults of a round share a target."""

import itertools
from collections import Counter

import pytest

from tests.chaos.plan import CUT_OFF_FROM, KINDS, Targets, rounds

TARGETS = Targets(
    services=("apiserver-1", "relay", "scheduler-1", "scheduler-2"),
    servers=("nats", "redis"),
    lines=("apiserver-1/nats", "apiserver-1/redis", "relay/nats", "scheduler-1/nats"),
    roles=("apiserver", "relay", "scheduler"),
    strangers=("stranger",),
)

OF_CLUSTERS = ("failover", "partition", "redis-partition", "old-disk")
OF_ONE_SERVER = ("restore",)
CLUSTER = TARGETS._replace(
    servers=("nats-1", "nats-2", "nats-3", "redis-1", "redis-2", "redis-3", "sentinel-1"),
    roles=("apiserver", "nats", "redis"),
    nodes=("nats-1", "nats-2", "nats-3", "redis-1", "redis-2", "redis-3"),
)


@pytest.mark.parametrize(
    "kinds",
    [
        tuple(kind for kind in KINDS if kind not in OF_CLUSTERS),
        ("kill", "cut"),
        ("restore",),
        ("garbage", "disk-full"),
    ],
)
def test_a_seed_repeats_the_order_of_faults(kinds: tuple[str, ...]) -> None:
    first, second = (list(itertools.islice(rounds(5, TARGETS, kinds), 200)) for _ in range(2))

    assert first == second
    assert first != list(itertools.islice(rounds(6, TARGETS, kinds), 200))
    assert {fault.kind for each in first for fault in each} == set(kinds)


def test_every_kind_comes_about_as_often_as_its_weight_says() -> None:
    faults = Counter(fault.kind for each in itertools.islice(rounds(1, TARGETS), 1000) for fault in each)

    assert set(faults) == set(KINDS) - set(OF_CLUSTERS)
    assert faults["kill"] == max(faults.values())
    assert faults["restore"] > faults["disk-full"] > 0


def test_faults_of_a_round_are_on_different_targets_and_some_kinds_are_alone() -> None:
    for each in itertools.islice(rounds(2, TARGETS), 500):
        targets = [fault.target for fault in each]
        assert len(set(targets)) == len(targets), each
        assert len(each) == 1 or not any(KINDS[fault.kind].is_alone for fault in each)
        for fault in each:
            assert KINDS[fault.kind].least_seconds <= fault.seconds <= KINDS[fault.kind].most_seconds
            assert bool(fault.detail) == (fault.kind in {"cut", "delay", "clock", "restore", "garbage"})


def test_with_few_targets_there_are_few_faults_in_a_round() -> None:
    for each in itertools.islice(rounds(3, TARGETS, ("rolling",)), 200):
        assert len({fault.target for fault in each}) == len(each) <= 3


def test_of_a_cluster_one_server_of_each_sort_is_hit_in_a_round() -> None:
    seen: set[str] = set()
    for each in itertools.islice(rounds(4, CLUSTER, together=12), 500):
        seen |= {fault.kind for fault in each}
        for sort in ("nats", "redis", "sentinel"):
            hit = [fault for fault in each if fault.target.startswith(sort) and "/" not in fault.target]
            assert len(hit) <= 1, each
    assert seen == set(KINDS) - set(OF_ONE_SERVER)


def test_servers_of_redis_are_cut_off_from_everybody_or_some_and_the_primary_more_often_than_others() -> None:
    faults = [each[0] for each in itertools.islice(rounds(6, CLUSTER, ("redis-partition",), together=12), 300)]

    assert {fault.detail for fault in faults} == set(CUT_OFF_FROM)
    assert {fault.target for fault in faults} == {"redis", "redis-1", "redis-2", "redis-3"}
