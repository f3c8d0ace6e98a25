"""Shoots that would fit a new seed: by the scheduler's own filters, on the landscape with that seed in it."""

from typing import Any

import pytest

from gardenbus.autoscaler.domain.scale_up_simulation import PendingShoots, ScaleUpSimulation
from gardenbus.cli.simulate.scheduling import snapshot_of
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.managed_seed_sets import template_seed
from gardenbus.common.api.garden.shoots import Shoot
from gardenbus.scheduling.equivalence_classes import SchedulingRequest, request_of
from gardenbus.scheduling.seed_candidates import SeedCandidate
from tests.support.builders import a_cloudprofile, a_project, a_region_configmap, a_seed, a_shoot, merged, resolved_as

LABELS = {"set": "grove"}


def a_managed_seed_set(**changes: Any) -> Document:
    """A set of tainted seeds of 10 in eu-west-1."""
    config = {
        "resources": {"capacity": {"shoots": "12"}, "reserved": {"shoots": "2"}},
        "seedConfig": {
            "metadata": {"labels": LABELS},
            "spec": {"taints": [{"key": "grove"}], "accessRestrictions": [{"name": "eu-access-only"}]},
        },
    }
    networking = {"nodes": "10.40.0.0/16", "pods": "10.41.0.0/16", "services": "10.42.0.0/16"}
    cluster = a_shoot(spec={"networking": networking})["spec"]
    return merged(
        {
            "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
            "kind": "ManagedSeedSet",
            "metadata": {"name": "grove", "namespace": "garden", "uid": "1-2-3"},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": LABELS},
                "template": {"metadata": {"labels": LABELS}, "spec": {"gardenlet": {"config": config}}},
                "shootTemplate": {"metadata": {"labels": LABELS}, "spec": cluster},
            },
        },
        changes,
    )


def proposals(**spec: Any) -> SchedulingRequest:
    shoot = a_shoot(spec={"tolerations": [{"key": "grove"}], "networking": {"nodes": "10.9.0.0/16"}, **spec})
    return request_of(Shoot.from_document(shoot), shoot)


def field_of(spec: Document) -> str:
    return next(iter(spec))


def a_simulation(
    *documents: Document, strategy: str = "SameRegion", changes: Document | None = None
) -> ScaleUpSimulation:
    landscape = [a_cloudprofile(), a_project(spec={"tolerations": {"whitelist": [{"key": "grove"}]}}), *documents]
    new_seed = template_seed(a_managed_seed_set(**(changes or {})), "new.seed")
    return ScaleUpSimulation(snapshot_of(landscape, strategy), SeedCandidate.of(new_seed))


def test_shoots_that_would_fit_are_counted_without_any_seed() -> None:
    assert a_simulation().classify(proposals(), 7).pending == 7
    assert a_simulation().classify(proposals(), 0).pending == 0


@pytest.mark.parametrize(
    "spec",
    [
        {"tolerations": None},
        {"region": "eu-central-1"},
        {"provider": {"type": "gcp"}},
        {"cloudProfile": {"name": "unknown"}},
        {"seedSelector": {"matchLabels": {"set": "orchard"}}},
        {"controlPlane": {"highAvailability": {"failureTolerance": {"type": "zone"}}}},
        {"controlPlane": {"zones": ["eu-west-1c"]}},
        {"accessRestrictions": [{"name": "us-access-only"}]},
        {"networking": {"nodes": "240.0.0.0/16"}},
        {"networking": {"nodes": "fd00::/64", "ipFamilies": ["IPv6"]}, "seedSelector": {"matchLabels": {"set": ""}}},
        {"networking": {"pods": "10.41.0.0/17"}},
    ],
    ids=field_of,
)
def test_shoots_that_would_not_fit_never_are(spec: Document) -> None:
    assert a_simulation().classify(proposals(**spec), 7).pending == 0


@pytest.mark.parametrize(
    "spec",
    [
        {"seedSelector": {"matchLabels": LABELS}},
        {"accessRestrictions": [{"name": "eu-access-only"}]},
        {"controlPlane": {"zones": ["eu-west-1a"]}},
    ],
    ids=field_of,
)
def test_what_the_templates_promise_counts(spec: Document) -> None:
    assert a_simulation().classify(proposals(**spec), 7).pending == 7


def test_shoots_that_find_room_on_a_seed_that_stands_are_nobodys_demand() -> None:
    current_snapshot = a_seed("a", shoots="3")
    simulation = a_simulation(current_snapshot)
    assert simulation.classify(proposals(), 7) == PendingShoots(4, 3)
    assert simulation.classify(proposals(), 2) == PendingShoots(2, 0), "the places are taken by those counted first"


def test_full_unready_and_cordoned_seeds_take_none() -> None:
    full = [a_seed("full", shoots="1"), a_shoot("first", spec={"seedName": "full"})]
    cordoned = a_seed("cordoned", spec={"settings": {"scheduling": {"visible": False}}})
    assert a_simulation(*full, cordoned, a_seed("unready", ready=False)).classify(proposals(), 7).pending == 7


def test_a_seed_without_limit_takes_all() -> None:
    assert a_simulation(a_seed("endless", shoots=None)).classify(proposals(), 7).pending == 0


def test_by_distance_a_new_seed_far_away_takes_what_nearer_ones_have_no_room_for() -> None:
    distances = a_region_configmap(data={"eu-central-1": "eu-central-1: 0\neu-west-1: 50\n"})
    near = a_seed("near", shoots="2", spec={"provider": {"region": "eu-central-1"}})
    request = proposals(region="eu-central-1")
    assert a_simulation(distances, near, strategy="MinimalDistance").classify(request, 7).pending == 5
    assert a_simulation(distances, near).classify(request, 7).pending == 0


def test_a_seed_that_only_prefers_zones_in_common_is_pushed_aside_by_others_as_the_scheduler_would() -> None:
    prefers = {"spec": {"settings": {"zoneSelection": {"mode": "Prefer"}}}}
    config = {"gardenlet": {"config": {"seedConfig": prefers}}}
    elsewhere = [{"name": "pool", "machine": {"type": "m5.large"}, "minimum": 1, "maximum": 1, "zones": ["eu-west-1c"]}]
    request = proposals(provider={"workers": elsewhere})
    template: Document = {"spec": {"template": {"spec": config}}}
    assert a_simulation(changes=template).classify(request, 7).pending == 7
    assert a_simulation(a_seed("full", shoots="0"), changes=template).classify(request, 7).pending == 0


def a_member(name: str, rules: Document, **spec: Any) -> Document:
    shoot = a_shoot(name, spec={"tolerations": [{"key": "grove"}], "networking": {"nodes": "10.9.0.0/16"}, **spec})
    return merged(shoot, {"metadata": resolved_as(rules)})


def request_with(rules: Document) -> SchedulingRequest:
    shoot = a_member("waiting", rules)
    return request_of(Shoot.from_document(shoot), shoot)


def apart(key: str) -> Document:
    return {"groups": ["p"], "affinity": {"shootAntiAffinity": {"required": [{"group": "p", "topologyKey": key}]}}}


def test_members_that_keep_each_other_off_a_seed_need_another_though_it_has_room() -> None:
    documents = [a_seed("a"), a_member("first", apart("seed"), seedName="a")]
    assert a_simulation(*documents).classify(request_with(apart("seed")), 2) == PendingShoots(2, 0)
    assert a_simulation(a_seed("a")).classify(request_with(apart("seed")), 3) == PendingShoots(2, 1)


def test_a_seed_of_the_same_region_helps_nobody_who_is_kept_off_that_region() -> None:
    documents = [a_seed("a"), a_member("first", apart("region"), seedName="a")]
    assert a_simulation(*documents).classify(request_with(apart("region")), 2).pending == 0


def test_who_follows_a_neighbour_needs_a_new_seed_only_where_it_may_be_near() -> None:
    near_region = {"affinity": {"shootAffinity": {"required": [{"group": "p", "topologyKey": "region"}]}}}
    near_seed = {"affinity": {"shootAffinity": {"required": [{"group": "p", "topologyKey": "seed"}]}}}
    documents = [a_seed("a", shoots="1"), a_member("first", {"groups": ["p"]}, seedName="a")]
    assert a_simulation(*documents).classify(request_with(near_region), 1).pending == 1
    assert a_simulation(*documents).classify(request_with(near_seed), 1).pending == 0


def test_a_full_domain_that_holds_a_group_up_is_demand_for_a_seed_there_and_for_none_elsewhere() -> None:
    spread = {
        "groups": ["p"],
        "topologySpreadConstraints": [
            {"group": "p", "topologyKey": "region", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
        ],
    }
    elsewhere: Document = {"spec": {"provider": {"region": "eu-central-1"}}}
    there = a_seed("there", shoots="5", **elsewhere)
    here = a_seed("here", shoots="0")
    anywhere = a_region_configmap(data={"eu-west-1": "eu-west-1: 0\neu-central-1: 50\n"})
    documents = [anywhere, there, here, a_member("first", spread, seedName="there")]
    simulation = a_simulation(*documents, strategy="MinimalDistance")
    assert simulation.classify(request_with(spread), 1).pending == 1
    ahead = [a_member(f"more-{number}", spread, seedName="here") for number in range(2)]
    assert a_simulation(*documents, *ahead, strategy="MinimalDistance").classify(request_with(spread), 1).pending == 0
