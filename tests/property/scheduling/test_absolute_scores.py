"""Scores are absolute: whole numbers from 0 to 100 of one seed, which no other seed changes."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gardenbus.cli.simulate.scheduling import snapshot_of
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.shoots import Shoot
from gardenbus.common.api.garden.strategies import STRATEGIES
from gardenbus.scheduling.equivalence_classes import SchedulingRequest, request_of
from gardenbus.scheduling.feasible_seeds import feasible_seeds_of
from gardenbus.scheduling.results import SeedScore
from gardenbus.scheduling.scores.seed_scores import scores_of
from gardenbus.scheduling.snapshot import Snapshot
from tests.property.scheduling.test_incremental_index import EXAMPLES, Score, profile_of, score_lists
from tests.support.generated_landscapes import landscapes

FARTHEST = 3


def snapshot(documents: list[Document], scores: list[Score], strategy: str) -> Snapshot:
    plain = snapshot_of(documents)
    return Snapshot(plain.landscape.with_profile(profile_of(scores, strategy)), plain.usage)


def scores_by_seed(request: SchedulingRequest, snapshot: Snapshot) -> dict[str, tuple[SeedScore, ...]]:
    """The scores of all seeds that pass the filters."""
    landscape, found = snapshot.landscape, feasible_seeds_of(request.constraints, snapshot.landscape)
    return {
        seed.name: scores_of(landscape.scores, found.scores, seed, snapshot.usage, request.requests)
        for seed in landscape.index.seeds_in(found.feasible)
    }


def seeds_of(documents: list[Document]) -> list[Document]:
    return [each for each in documents if each["kind"] == "Seed"]


@settings(max_examples=EXAMPLES, deadline=None)
@given(landscapes(), score_lists, st.sampled_from(STRATEGIES), st.data())
def test_no_seed_that_leaves_and_no_order_of_seeds_changes_the_scores_of_another_one(
    documents: list[Document], scores: list[Score], strategy: str, data: st.DataObject
) -> None:
    fixed = [_with_fixed_distance(each) for each in scores]
    if strategy == "Weighted" and not any(name == "MinimalDistance" for name, _, _ in fixed):
        fixed.append(("MinimalDistance", 1, {"farthest": FARTHEST}))
    whole = snapshot(documents, fixed, strategy)
    gone = data.draw(st.sampled_from([None, *seeds_of(documents)]))
    rest = [each for each in data.draw(st.permutations(documents)) if each is not gone]
    reduced = snapshot(rest, fixed, strategy)
    for shoot in (each for each in documents if each["kind"] == "Shoot" and not each["spec"].get("seedName")):
        request = request_of(Shoot.from_document(shoot), reads_purpose=True)
        before, after = scores_by_seed(request, whole), scores_by_seed(request, reduced)
        both = before.keys() & after.keys()
        assert {name: before[name] for name in both} == {name: after[name] for name in both}
        points = [each.score for found in before.values() for each in found]
        assert all(isinstance(each, int) and 0 <= each <= 100 for each in points)


def _with_fixed_distance(score: Score) -> Score:
    """The score, with the greatest distance as an argument: it is the one number that all seeds may share."""
    name, weight, args = score
    fixed: dict[str, Any] = {"farthest": FARTHEST} if name == "MinimalDistance" else {}
    return name, weight, args | fixed
