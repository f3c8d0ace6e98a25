"""The seeds that a shoot requires and prefers by their labels."""

from gardenbus.cli.simulate.scheduling import snapshot_of
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.scheduling_profiles import (
    AddedAffinity,
    PreferredSeeds,
    ResourcesFit,
    SchedulingProfile,
    SeedAffinity,
    WeightedScore,
)
from gardenbus.common.api.garden.shoots import Shoot
from gardenbus.common.api.selectors import parse_selector
from gardenbus.scheduling.assignment import decide
from gardenbus.scheduling.equivalence_classes import descriptor, request_from_descriptor, request_of
from gardenbus.scheduling.results import Assignment, SchedulingResult, Unschedulable
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot, merged, resolved_as

LABELS = {"a": {"tier": "lead"}, "b": {"tier": "gold"}, "c": {"tier": "gold", "rack": "7"}}
FIT = WeightedScore("SeedResourcesFit", 1, ResourcesFit())


def a_choosy_shoot(**terms: Document) -> Document:
    return merged(a_shoot(), {"metadata": resolved_as({"affinity": {"seedAffinity": terms}})})


def decided(shoot: Document, profile: SchedulingProfile | None = None) -> SchedulingResult:
    seeds = [a_seed(name, metadata={"labels": labels}) for name, labels in LABELS.items()]
    snapshot = snapshot_of([a_project(), a_cloudprofile(), *seeds])
    landscape = snapshot.landscape if profile is None else snapshot.landscape.with_profile(profile)
    request = request_of(Shoot.from_document(shoot))
    assert request_from_descriptor(descriptor(request)) == request
    return decide(request, type(snapshot)(landscape, snapshot.usage))


def seed_of(result: SchedulingResult) -> str:
    assert isinstance(result, Assignment), result
    return result.seed


def test_a_shoot_goes_to_a_seed_that_one_of_its_required_terms_matches_in_every_profile() -> None:
    shoot = a_choosy_shoot(required=[{"matchLabels": {"rack": "9"}}, {"matchLabels": {"tier": "gold"}}])  # pyright: ignore[reportArgumentType]
    assert seed_of(decided(shoot)) == "b"
    assert seed_of(decided(shoot, SchedulingProfile(scores=(FIT,)))) == "b"
    assert seed_of(decided(a_shoot())) == "a"


def test_a_shoot_that_no_seed_matches_is_told_what_it_requires() -> None:
    result = decided(a_choosy_shoot(required=[{"matchLabels": {"tier": "tin"}}]))  # pyright: ignore[reportArgumentType]
    assert isinstance(result, Unschedulable)
    assert result.rule == "seed-affinity"
    assert "a => its labels do not match what the shoot requires: tier=tin" in result.message


def test_preferred_terms_count_where_a_profile_scores_them_beside_those_of_the_operator() -> None:
    shoot = a_choosy_shoot(preferred=[{"weight": 60, "preference": {"matchLabels": {"rack": "7"}}}])  # pyright: ignore[reportArgumentType]
    plain = WeightedScore("SeedAffinity", 4, SeedAffinity())
    assert seed_of(decided(shoot)) == "a"
    assert seed_of(decided(shoot, SchedulingProfile(scores=(plain, FIT)))) == "c"
    lead = PreferredSeeds(61, parse_selector({"matchLabels": {"tier": "lead"}}))
    both = WeightedScore("SeedAffinity", 4, SeedAffinity(added=(AddedAffinity(preferred=(lead,)),)))
    assert seed_of(decided(shoot, SchedulingProfile(scores=(both, FIT)))) == "a"


def test_the_operators_requirement_holds_besides_the_shoots() -> None:
    rack = AddedAffinity(required=(parse_selector({"matchLabels": {"rack": "7"}}),))
    profile = SchedulingProfile(scores=(WeightedScore("SeedAffinity", 4, SeedAffinity(added=(rack,))), FIT))
    assert seed_of(decided(a_choosy_shoot(required=[{"matchLabels": {"tier": "gold"}}]), profile)) == "c"  # pyright: ignore[reportArgumentType]
    result = decided(a_choosy_shoot(required=[{"matchLabels": {"tier": "lead"}}]), profile)  # pyright: ignore[reportArgumentType]
    assert isinstance(result, Unschedulable)
