"""What is kept of a class that fits nowhere: a name a seed, and not a sentence a seed."""

import tracemalloc

import pytest

from gardenbus.bench.manifests.shoots import shoot
from gardenbus.common.api.garden.shoots import Shoot
from gardenbus.scheduling.assignment import decide
from gardenbus.scheduling.diagnosis import diagnosis_of, unschedulable
from gardenbus.scheduling.equivalence_classes import SchedulingRequest, request_of
from gardenbus.scheduling.results import Unschedulable
from gardenbus.scheduling.snapshot import Snapshot
from tests.support.bench_landscapes import bench_landscape

SEEDS = 1_000
CLASSES = 20
BYTES_PER_SEED = 24


def impossible(number: int) -> SchedulingRequest:
    document = shoot(f"s{number}", number, "mixed", impossible=True)
    return request_of(Shoot.from_document(document), document)


def test_a_class_that_fits_nowhere_costs_a_name_a_seed() -> None:
    snapshot = Snapshot(bench_landscape("mixed", SEEDS))
    first, *others = {(request := impossible(number)).constraints: request for number in range(CLASSES + 1)}.values()
    decide(first, snapshot)  # what all classes share
    unschedulable(first, snapshot)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        failures = [unschedulable(request, snapshot) for request in others]
        kept = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert len(others) >= CLASSES // 2
    assert kept / len(others) / SEEDS < BYTES_PER_SEED
    for request, rejection in zip(others, failures, strict=True):
        assert isinstance(rejection, Unschedulable)
        assert sum(rejection.rejected.values()) == SEEDS
        groups = diagnosis_of(request.constraints, snapshot.landscape).rejections
        assert sum(len(each.seeds) for each in groups) == SEEDS


@pytest.mark.parametrize("seeds", [1, 30])
def test_every_seed_is_rejected_once_with_its_filter_and_words(seeds: int) -> None:
    landscape = bench_landscape("mixed", seeds)
    groups = diagnosis_of(impossible(7).constraints, landscape).rejections
    rejections = [each for group in groups for each in group.rejections]
    assert sorted(each.seed for each in rejections) == [seed.name for seed in landscape.seeds]
    assert all(each.rule and each.detail for each in rejections)
    assert len({(group.rule, group.detail) for group in groups}) == len(groups)
