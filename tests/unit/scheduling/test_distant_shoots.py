"""Shoots that are farther away than a ready seed with room would be."""

from typing import Any

import pytest

from gardenbus.cli.migrations.rebalancing import distant_shoots
from gardenbus.cli.simulate.scheduling import snapshot_of
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.scheduling.descheduling.relocation import HostedSeeds
from tests.support.builders import a_cloudprofile, a_condition, a_project, a_region_configmap, a_seed, a_shoot, merged

DISTANCES = {"eu-west-1": "eu-central-1: 20\nus-east-1: 80\n", "ap-south-1": "us-east-1: 5\n"}
NOT_READY: Document = {"status": {"conditions": [a_condition("GardenletReady", "Unknown")]}}
FULL: Document = {"status": {"allocatable": {"shoots": "0"}}}


def seed(name: str, region: str, *changes: Any, domain: str = "") -> Document:
    spec: Document = {"provider": {"region": region}}
    if domain:
        spec["dns"] = {"defaults": [{"type": "aws-route53", "domain": domain}]}
    document = merged(a_seed(name), {"spec": spec})
    for each in changes:
        document = merged(document, each)
    return document


def shoot(name: str, on: str, **changes: Any) -> Document:
    return a_shoot(name, **merged({"spec": {"seedName": on}, "status": {"seedName": on}}, changes))


def found(*documents: Document, strategy: str = "MinimalDistance", forbidden: HostedSeeds | None = None) -> list[Any]:
    landscape = [a_project(), a_cloudprofile(), a_region_configmap(data=DISTANCES), *documents]
    shoots = [each for each in documents if each["kind"] == "Shoot"]
    return [
        (each.name, each.seed, each.nearer.own_distance, each.nearer.seed, each.nearer.distance)
        + (("domain",) if each.nearer.is_kept_by_domain else ())
        for each in distant_shoots(shoots, snapshot_of(landscape, strategy), forbidden or {})
    ]


def test_a_shoot_is_distant_while_a_nearer_seed_is_ready_and_has_room():
    near, far = seed("near", "eu-west-1"), seed("far", "us-east-1")

    assert found(near, far, shoot("phoebe", "far"), shoot("home", "near")) == [("phoebe", "far", 80, "near", 0)]
    assert found(merged(near, NOT_READY), far, shoot("phoebe", "far")) == []
    assert found(merged(near, FULL), far, shoot("phoebe", "far")) == []
    assert found(far, shoot("phoebe", "far")) == []


def test_the_nearest_with_room_is_named_where_the_very_nearest_is_full():
    seeds = [seed("near", "eu-west-1", FULL), seed("middle", "eu-central-1"), seed("far", "us-east-1")]

    assert found(*seeds, shoot("phoebe", "far")) == [("phoebe", "far", 80, "middle", 20)]


def test_a_cordoned_seed_of_its_own_is_as_far_as_before():
    cordoned: Any = {"spec": {"settings": {"scheduling": {"visible": False}}}}

    assert found(seed("near", "eu-west-1"), seed("far", "us-east-1", cordoned), shoot("phoebe", "far")) == [
        ("phoebe", "far", 80, "near", 0)
    ]


@pytest.mark.parametrize("domain", ["phoebe.dev.virginia.example.org", "other.dev.virginia.example.org"])
def test_the_domain_of_its_own_seed_is_named_where_it_alone_keeps_a_shoot_away(domain: str):
    seeds = [
        seed("near", "eu-west-1", domain="eu.example.org"),
        seed("far", "us-east-1", domain="virginia.example.org"),
    ]
    own = shoot("phoebe", "far", spec={"dns": {"domain": domain}})

    assert found(*seeds, own) == [("phoebe", "far", 80, "near", 0, "domain")]


def test_a_domain_of_ones_own_keeps_no_shoot_anywhere():
    seeds = [seed("near", "eu-west-1", domain="eu.example.org"), seed("far", "us-east-1", domain="us.example.org")]
    own = shoot("phoebe", "far", spec={"dns": {"domain": "phoebe.example.com"}})

    assert found(*seeds, own) == [("phoebe", "far", 80, "near", 0)]


def test_a_full_near_seed_is_not_held_against_the_domain():
    seeds = [
        seed("near", "eu-west-1", FULL, domain="eu.example.org"),
        seed("far", "us-east-1", domain="virginia.example.org"),
    ]

    assert found(*seeds, shoot("phoebe", "far", spec={"dns": {"domain": "phoebe.dev.virginia.example.org"}})) == []


def test_a_region_of_the_configmap_is_nearer_than_one_by_name_whatever_the_numbers():
    seeds = [seed("configured", "us-east-1"), seed("by-name", "eu-south-1")]
    spec: Any = {"region": "ap-south-1"}

    assert found(*seeds, shoot("a", "configured", spec=spec), shoot("b", "by-name", spec=spec)) == [
        ("b", "by-name", 4, "configured", 5)
    ]


def test_without_distances_none_is_distant():
    near, far = seed("near", "eu-west-1"), seed("far", "us-east-1")

    assert found(near, far, shoot("phoebe", "far"), strategy="SameRegion") == []
    assert found(near, far, shoot("phoebe", "far", spec={"purpose": "testing"})) == []


def test_a_shoot_that_is_under_way_or_of_another_scheduler_is_none():
    near, far = seed("near", "eu-west-1"), seed("far", "us-east-1")
    leaving: Any = {"metadata": {"deletionTimestamp": "2026-01-02T03:04:05Z"}}

    assert found(near, far, shoot("a", "far", **leaving)) == []
    assert found(near, far, shoot("a", "far", status={"seedName": "near"})) == []
    assert found(near, far, shoot("a", "far", spec={"schedulerName": "mine"})) == []


def test_a_seed_that_the_shoot_itself_hosts_is_no_nearer_one():
    near, far = seed("near", "eu-west-1"), seed("far", "us-east-1")
    hosted = {ObjectKey("shoot", "garden-dev", "phoebe"): frozenset({"near"})}

    assert found(near, far, shoot("phoebe", "far"), forbidden=hosted) == []
