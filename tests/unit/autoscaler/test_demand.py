"""Who would fit a new seed: by the scheduler's own rules, on the landscape with that seed in it."""

from typing import Any

import pytest

from gardenbus.autoscaler.decide.demand import Prospect, Waiting
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.managed_seed_sets import template_seed
from gardenbus.common.resources.shoots import Shoot
from gardenbus.scheduling.landscape import SeedCandidate
from gardenbus.scheduling.request import SchedulingRequest, request_of
from gardenbus.scheduling.simulate import snapshot_of
from tests.support.builders import a_cloudprofile, a_project, a_region_configmap, a_seed, a_shoot, merged

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


def asked(**spec: Any) -> SchedulingRequest:
    shoot = a_shoot(spec={"tolerations": [{"key": "grove"}], "networking": {"nodes": "10.9.0.0/16"}, **spec})
    return request_of(Shoot.from_document(shoot), shoot)


def field_of(spec: Document) -> str:
    return next(iter(spec))


def a_prospect(*documents: Document, strategy: str = "SameRegion", changes: Document | None = None) -> Prospect:
    landscape = [a_cloudprofile(), a_project(spec={"tolerations": {"whitelist": [{"key": "grove"}]}}), *documents]
    new_seed = template_seed(a_managed_seed_set(**(changes or {})), "new.seed")
    return Prospect(snapshot_of(landscape, strategy), SeedCandidate.of(new_seed))


def test_shoots_that_would_fit_are_counted_without_any_seed() -> None:
    assert a_prospect().sort(asked(), 7).pending == 7
    assert a_prospect().sort(asked(), 0).pending == 0


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
    assert a_prospect().sort(asked(**spec), 7).pending == 0


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
    assert a_prospect().sort(asked(**spec), 7).pending == 7


def test_shoots_that_find_room_on_a_seed_that_stands_are_nobodys_demand() -> None:
    standing = a_seed("a", shoots="3")
    prospect = a_prospect(standing)
    assert prospect.sort(asked(), 7) == Waiting(4, 3)
    assert prospect.sort(asked(), 2) == Waiting(2, 0), "the places are taken by those counted first"


def test_full_unready_and_cordoned_seeds_take_none() -> None:
    full = [a_seed("full", shoots="1"), a_shoot("first", spec={"seedName": "full"})]
    cordoned = a_seed("cordoned", spec={"settings": {"scheduling": {"visible": False}}})
    assert a_prospect(*full, cordoned, a_seed("unready", ready=False)).sort(asked(), 7).pending == 7


def test_a_seed_without_limit_takes_all() -> None:
    assert a_prospect(a_seed("endless", shoots=None)).sort(asked(), 7).pending == 0


def test_by_distance_a_new_seed_far_away_takes_what_nearer_ones_have_no_room_for() -> None:
    distances = a_region_configmap(data={"eu-central-1": "eu-central-1: 0\neu-west-1: 50\n"})
    near = a_seed("near", shoots="2", spec={"provider": {"region": "eu-central-1"}})
    request = asked(region="eu-central-1")
    assert a_prospect(distances, near, strategy="MinimalDistance").sort(request, 7).pending == 5
    assert a_prospect(distances, near).sort(request, 7).pending == 0


def test_a_seed_that_only_prefers_zones_in_common_is_pushed_aside_by_others_as_the_scheduler_would() -> None:
    prefers = {"spec": {"settings": {"zoneSelection": {"mode": "Prefer"}}}}
    config = {"gardenlet": {"config": {"seedConfig": prefers}}}
    elsewhere = [{"name": "pool", "machine": {"type": "m5.large"}, "minimum": 1, "maximum": 1, "zones": ["eu-west-1c"]}]
    request = asked(provider={"workers": elsewhere})
    template: Document = {"spec": {"template": {"spec": config}}}
    assert a_prospect(changes=template).sort(request, 7).pending == 7
    assert a_prospect(a_seed("full", shoots="0"), changes=template).sort(request, 7).pending == 0
