"""Suggestions of `explain` for a shoot that no seed takes."""

from typing import Any

from gardenbus.cli.simulate.scheduling import snapshot_of
from gardenbus.common.api.garden.shoots import Shoot
from gardenbus.common.api.garden.strategies import SAME_REGION
from gardenbus.scheduler.domain.explain.suggestions import suggestions_for
from gardenbus.scheduling.equivalence_classes import request_of
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot


def suggestions(networking: dict[str, Any], *seeds: dict[str, Any]) -> tuple[str, ...]:
    shoot = a_shoot(spec={"networking": networking})
    snapshot = snapshot_of([a_project(), a_cloudprofile(), *seeds, shoot], SAME_REGION)
    return suggestions_for(request_of(Shoot.from_document(shoot)), snapshot)


def a_seed_with(name: str, pods: str) -> dict[str, Any]:
    return a_seed(name, spec={"networks": {"nodes": "10.240.0.0/16", "pods": pods, "services": "10.241.0.0/16"}})


def test_the_shoots_own_pod_range_is_the_cure_where_nothing_else_keeps_it_off():
    found = suggestions(
        {"pods": "100.128.0.0/11"}, a_seed_with("a", "100.128.0.0/11"), a_seed_with("b", "100.144.0.0/16")
    )
    assert found[0] == (
        "the shoot's spec.networking.pods becomes a range that overlaps none of the seed's, as 100.64.0.0/12: "
        "it fits on one of the seeds a, b then"
    )


def test_a_range_that_a_seed_has_is_not_proposed_for_it():
    found = suggestions({"pods": "100.64.0.0/12", "services": "10.0.0.0/16"}, a_seed_with("a", "100.64.0.0/12"))
    assert "as 100.96.0.0/12: it fits on seed a then" in found[0]


def test_one_range_alone_is_no_cure_where_two_overlap():
    both = {"pods": "100.128.0.0/11", "services": "10.241.0.0/16"}
    assert not any("spec.networking" in each for each in suggestions(both, a_seed_with("a", "100.128.0.0/11")))
