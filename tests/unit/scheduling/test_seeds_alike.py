"""Seeds that are alike in what a result reads: one of them is tried, whatever their number, and each change counts."""

from collections.abc import Callable

from gardenbus.scheduling.score_table import NO_SCORES
from gardenbus.scheduling.scores.usage_levels import UsageLevels
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.seed_index import SeedIndex, SeedPart
from gardenbus.scheduling.usage_index import UsageIndex
from tests.support.builders import a_seed

SEEDS = 300
RINGS = SeedPart("ring", lambda seed: seed.seed.metadata.labels.get("ring"))


def a_candidate(number: int, ring: str, cpu: str = "4") -> SeedCandidate:
    status = {"allocatable": {"shoots": "9", "cpu": cpu}}
    return SeedCandidate.of(a_seed(f"s{number:03}", metadata={"labels": {"ring": ring}}, status=status))


def an_index() -> SeedIndex:
    return SeedIndex([a_candidate(number, str(number % 3)) for number in range(SEEDS)])


def test_of_seeds_that_are_alike_one_is_tried() -> None:
    index, tried = an_index(), list[str]()

    def passes(seed: SeedCandidate) -> bool:
        tried.append(seed.name)
        return seed.seed.metadata.labels["ring"] == "1"

    found = index.matching("first", passes, RINGS)
    assert len(tried) == 3
    assert [seed.name for seed in index.seeds_in(found)] == [f"s{number:03}" for number in range(1, SEEDS, 3)]


def test_a_seed_that_changes_its_part_is_found_with_those_that_it_is_like_now() -> None:
    index = an_index()
    rings = {ring: index.matching(ring, _of_ring(ring), RINGS) for ring in "012"}
    index.put(a_candidate(0, "1"))
    index.put(a_candidate(SEEDS, "1"))
    index.remove("s001")
    for ring, before in rings.items():
        afresh = index.bits_of(seed for seed in index.seeds if seed is not None and _of_ring(ring)(seed))
        assert (
            index.matching(ring, _of_ring(ring), RINGS)
            == afresh
            == index.matching(f"new {ring}", _of_ring(ring), RINGS)
        )
        assert before.bit_count() == 100
        assert afresh.bit_count() == {"0": 99, "1": 101, "2": 100}[ring]
    points = index.graded("points", lambda seed: int(seed.seed.metadata.labels["ring"]), RINGS)
    assert {number: seeds.bit_count() for number, seeds in points.items()} == {0: 99, 1: 101, 2: 100}


def _of_ring(ring: str) -> Callable[[SeedCandidate], bool]:
    return lambda seed: seed.seed.metadata.labels["ring"] == ring


def test_levels_of_many_seeds_are_those_that_one_seed_after_the_other_gives() -> None:
    index = SeedIndex([a_candidate(number, "0", str(number % 4)) for number in range(SEEDS)])
    usage = UsageIndex(
        {f"s{number:03}": number % 11 for number in range(SEEDS)},
        {f"s{number:03}": {"cpu": number % 5 * 1000} for number in range(0, SEEDS, 2)},
    )
    at_once = UsageLevels(NO_SCORES, (("cpu", 1000),), usage, index)
    index.changed.extend(range(SEEDS))
    one_by_one = UsageLevels(NO_SCORES, (("cpu", 1000),), usage, SeedIndex([]))
    one_by_one.index, one_by_one.changes = index, 0
    one_by_one.catch_up()
    for part in ("open", "by_sum", "sums", "sum_of"):
        assert getattr(at_once, part) == getattr(one_by_one, part)
    assert 0 < at_once.open.bit_count() < SEEDS
