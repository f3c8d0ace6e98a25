"""What is measured with is what it is said to be."""

import itertools

import pytest

from gardenbus.apiserver.domain.fields.check import field_faults, path_text
from gardenbus.bench.manifests.shoots import (
    CLASSES,
    MAPPED,
    NAMESPACE,
    Mix,
    basics,
    groups_of,
    names,
    placed,
    seed,
    shoot,
)
from gardenbus.bench.scenarios.scheduling import WEIGHTED_PROFILE
from gardenbus.common.api.configuration.scheduler import parse_configuration
from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.fields.kinds import sent_shape
from gardenbus.common.api.garden.scheduling_profiles import SchedulingProfile
from gardenbus.common.api.garden.shoots import Shoot
from gardenbus.embedded.configurations import DEFAULT_SCHEDULER_CONFIGURATION
from gardenbus.scheduling.assignment import decide
from gardenbus.scheduling.equivalence_classes import SchedulingRequest, request_of
from gardenbus.scheduling.results import Assignment
from gardenbus.scheduling.snapshot import Snapshot
from tests.support.bench_landscapes import bench_landscape


def parse_profiles(profile: Document) -> SchedulingProfile:
    """The profile of a configuration with no other one."""
    configuration: Document = {**DEFAULT_SCHEDULER_CONFIGURATION, "schedulers": {"shoot": {}}, "profiles": [profile]}
    return parse_configuration(encode(configuration)).profiles[0]


def request(document: Document) -> SchedulingRequest:
    return request_of(Shoot.from_document(document))


def field_problems(document: Document) -> list[str]:
    kind = str(document["kind"])
    shape = sent_shape(str(document["apiVersion"]), kind)
    assert shape is not None
    return [f"{path_text(fault.path)}: {fault.message}" for fault in field_faults(document, shape, kind=kind)]


@pytest.mark.parametrize("mix", ["uniform", "mixed", "weighted"])
def test_all_manifests_are_valid_under_strict_validation(mix: Mix) -> None:
    for document in (*basics(mix), seed(1, mix), *(shoot(f"s{number}", number, mix) for number in range(CLASSES))):
        assert field_problems(document) == []


@pytest.mark.parametrize(("mix", "most"), [("uniform", 4096), ("mixed", 4096), ("weighted", 4608)])
def test_a_shoot_is_two_to_four_kilobytes(mix: Mix, most: int) -> None:
    sizes = [len(encode(shoot(f"p0-{number:07}", number, mix))) for number in range(400)]
    sizes += [len(encode(placed(f"placed-{number:07}", number, "seed-00001", mix))) for number in range(400)]
    assert 2048 <= min(sizes) <= max(sizes) <= most


def test_a_mixed_landscape_has_two_hundred_classes_and_a_uniform_one_has_one() -> None:
    mixed = {request(shoot(f"s{number}", number, "mixed")).constraints for number in range(2000)}
    uniform = {request(shoot(f"s{number}", number, "uniform")) for number in range(100)}
    assert (len(mixed), len(uniform)) == (CLASSES, 1)


def test_a_mixed_landscape_is_as_mixed_as_it_is_said_to_be() -> None:
    shoots = [shoot(f"s{number}", number, "mixed")["spec"] for number in range(2000)]
    usual = shoot("usual", 0, "uniform")["spec"]["networking"]
    assert sum(each["cloudProfile"]["name"] == MAPPED for each in shoots) == 0.3 * len(shoots)
    assert sum(each["networking"] != usual for each in shoots) == pytest.approx(0.2 * len(shoots), abs=20)
    for field in ("seedSelector", "accessRestrictions", "controlPlane"):
        assert 0.05 < sum(field in each for each in shoots) / len(shoots) < 0.5
    seeds = [seed(number, "mixed")["spec"] for number in range(240)]
    assert sum("taints" in each for each in seeds) == 30
    assert sum("accessRestrictions" in each for each in seeds) == 90


@pytest.mark.parametrize(("mix", "seeds"), [("uniform", 3), ("mixed", 60), ("mixed", 240)])
def test_every_shoot_fits_somewhere(mix: Mix, seeds: int) -> None:
    snapshot = Snapshot(bench_landscape(mix, seeds))
    for number in range(600):
        outcome = decide(request(shoot(f"s{number}", number, mix)), snapshot)
        assert isinstance(outcome, Assignment), outcome
        snapshot.assume(outcome.seed)


def test_a_weighted_landscape_requests_four_sizes_and_has_a_tenth_of_its_shoots_in_groups_that_are_kept_apart() -> None:
    profile = parse_profiles(WEIGHTED_PROFILE)
    snapshot = Snapshot(bench_landscape("weighted", 240).with_profile(profile))
    seeds: dict[str, list[str]] = {}
    sizes: set[int] = set()
    for number, name in enumerate(names("p0", 1000)):
        wanted = request(shoot(name, number, "weighted"))
        outcome = decide(wanted, snapshot)
        assert isinstance(outcome, Assignment), outcome
        assert [each.name for each in outcome.scores] == [each.name for each in profile.scores]
        assert list(wanted.rules.groups) == groups_of(name, number, "weighted")
        snapshot.assume(outcome.seed, wanted.requests)
        snapshot.groups.assume(NAMESPACE, wanted.rules, outcome.seed)
        sizes.update(amount for _, amount in wanted.requests)
        for group in wanted.rules.groups:
            seeds.setdefault(group, []).append(outcome.seed)
    assert len(sizes) == 4
    assert [len(each) for each in seeds.values()] == [10] * 10
    assert all(len(set(each)) == len(each) for each in seeds.values())


def test_some_shoots_of_a_mixed_landscape_go_to_another_region_and_some_must_pass_a_seed_over() -> None:
    snapshot = Snapshot(bench_landscape("mixed", 240))
    outcomes = [decide(request(shoot(f"s{number}", number, "mixed")), snapshot) for number in range(600)]
    distances = {outcome.distance for outcome in outcomes if isinstance(outcome, Assignment)}
    assert len(distances) > 3
    used = {seed(number, "mixed")["spec"]["networks"]["nodes"] for number in range(240)}
    assert used & {shoot(f"s{number}", number, "mixed")["spec"]["networking"]["nodes"] for number in range(600)}


def test_no_seed_fits_an_impossible_shoot() -> None:
    snapshot = Snapshot(bench_landscape("uniform", 30))
    for number in itertools.chain(range(20), range(200, 220)):
        assert not isinstance(decide(request(shoot("never", number, "uniform", impossible=True)), snapshot), Assignment)
