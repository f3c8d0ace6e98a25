"""Suggestions of `explain` for a shoot that no seed takes."""

from typing import Any

from gardenbus.cli.simulate.scheduling import snapshot_of
from gardenbus.common.api.garden.shoots import Shoot
from gardenbus.common.api.garden.strategies import MINIMAL_DISTANCE, SAME_REGION
from gardenbus.scheduler.domain.explain.suggestions import suggestions_for
from gardenbus.scheduling.assignment import decide
from gardenbus.scheduling.equivalence_classes import request_of
from gardenbus.scheduling.results import Assignment, Unschedulable
from tests.support.builders import a_cloudprofile, a_project, a_region_configmap, a_seed, a_shoot, merged, resolved_as


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


def test_a_full_domain_that_holds_a_group_up_for_ever_is_named_with_both_ways_out():
    by_region = {"group": "web", "topologyKey": "region", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    spread = {"groups": ["web"], "topologySpreadConstraints": [by_region]}
    near = a_seed("near", shoots="10")
    full = a_seed("full", shoots="1", spec={"provider": {"region": "eu-central-1"}})
    other = a_shoot("other", spec={"seedName": "full", "region": "eu-central-1"})
    first = merged(a_shoot("first", spec={"seedName": "near"}), {"metadata": resolved_as(spread)})
    waiting = merged(a_shoot("waiting"), {"metadata": resolved_as(spread)})
    distances = a_region_configmap(data={"eu-west-1": "eu-west-1: 0\neu-central-1: 50\n"})
    documents = [a_project(), a_cloudprofile(), distances, near, full, other, first, waiting]
    snapshot = snapshot_of(documents, MINIMAL_DISTANCE)
    request = request_of(Shoot.from_document(waiting))

    outcome = decide(request, snapshot)
    found = suggestions_for(request, snapshot)

    assert isinstance(outcome, Unschedulable)
    assert "region aws/eu-central-1" in outcome.message
    assert "seed has no capacity left for shoots" in outcome.message
    ways_out = (
        "a seed with room is added in region aws/eu-central-1, "
        "or the constraint that closes seed near has fullDomains: Ignore"
    )
    assert ways_out in found
    ignoring = {**spread, "topologySpreadConstraints": [{**by_region, "fullDomains": "Ignore"}]}
    helped = merged(a_shoot("waiting"), {"metadata": resolved_as(ignoring)})
    assert isinstance(decide(request_of(Shoot.from_document(helped)), snapshot), Assignment)
    roomy = merged(full, {"status": {"allocatable": {"shoots": "2"}}})
    assert isinstance(decide(request, snapshot_of([*documents, roomy], MINIMAL_DISTANCE)), Assignment)


def test_a_label_that_no_seed_has_is_what_a_rule_about_it_needs():
    rack = {"group": "web", "topologyKey": "example.com/rack"}
    for rules in (
        {"groups": ["web"], "topologySpreadConstraints": [{**rack, "maxSkew": 1}]},
        {"groups": ["web"], "affinity": {"shootAntiAffinity": {"required": [rack]}}},
    ):
        shoot = merged(a_shoot(), {"metadata": resolved_as(rules)})
        snapshot = snapshot_of([a_project(), a_cloudprofile(), a_seed("a"), a_seed("b"), shoot])
        found = suggestions_for(request_of(Shoot.from_document(shoot)), snapshot)
        assert found[0] == "one of the seeds a, b gets the label example.com/rack"
