"""What seed a ManagedSeed asks for, and what it takes over from its shoot."""

from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.managed_seeds import (
    capacity_of,
    runs_gardenlet,
    seed_of,
    seed_template_of,
    with_shoot_defaults,
    zones_of_workers,
)
from tests.support.builders import a_seed, a_shoot

TEMPLATE: Document = {"metadata": {"labels": {"a": "b"}}, "spec": {"provider": {"type": "aws"}}}


def a_managed_seed(**spec: Any) -> Document:
    return {
        "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
        "kind": "ManagedSeed",
        "metadata": {"name": "child", "namespace": "garden"},
        "spec": {"shoot": {"name": "child"}, **spec},
    }


def in_gardenlet(**config: Any) -> Document:
    return a_managed_seed(gardenlet={"config": config})


def a_child(**spec: Any) -> Document:
    return a_shoot("child", "garden", spec={"dns": {"domain": "child.example.org"}, **spec})


@pytest.mark.parametrize(
    "managed_seed",
    [in_gardenlet(seedConfig=TEMPLATE), a_managed_seed(seedTemplate=TEMPLATE), a_managed_seed(seed=TEMPLATE)],
)
def test_the_template_stands_in_one_of_three_places(managed_seed: Document) -> None:
    assert seed_template_of(managed_seed) == TEMPLATE
    assert runs_gardenlet(managed_seed) == ("gardenlet" in managed_seed["spec"])


@pytest.mark.parametrize("spec", [{}, {"gardenlet": {}}, {"gardenlet": None}, {"seed": 5}, {"seedTemplate": {}}])
def test_nothing_is_asked_for_where_nothing_is_stated(spec: Document) -> None:
    assert seed_template_of(a_managed_seed(**spec)) == {}


def test_a_gardenlet_takes_250_shoots_unless_it_says_otherwise() -> None:
    assert capacity_of(a_managed_seed()) == ({"shoots": "250"}, {})
    resources = {"capacity": {"shoots": 10, "cpu": "1"}, "reserved": {"shoots": 1}}
    assert capacity_of(in_gardenlet(resources=resources)) == ({"shoots": 10, "cpu": "1"}, {"shoots": 1})


def test_the_seed_is_called_as_its_managed_seed() -> None:
    template = {"metadata": {"name": "other", "labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": {"x": 1}}
    assert seed_of(a_managed_seed(seedTemplate=template)) == {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Seed",
        "metadata": {
            "name": "child",
            "labels": {"a": "b", "gardener.cloud/role": "seed"},
            "annotations": {"c": "d"},
        },
        "spec": {"x": 1},
    }


def test_what_is_left_open_comes_from_the_shoot() -> None:
    workers = [{"name": "a", "zones": ["eu-west-1b", "eu-west-1a"]}, {"name": "b", "zones": ["eu-west-1b"]}]
    shoot = a_child(provider={"type": "aws", "workers": workers})
    for managed_seed in (a_managed_seed(gardenlet={}), a_managed_seed(seedTemplate={}), a_managed_seed(seed={})):
        assert seed_of(with_shoot_defaults(managed_seed, shoot))["spec"] == {
            "ingress": {"domain": "ingress.child.example.org", "controller": {"kind": "nginx"}},
            "networks": {"nodes": "10.0.0.0/16", "pods": "100.96.0.0/11", "services": "100.64.0.0/13"},
            "provider": {"type": "aws", "region": "eu-west-1", "zones": ["eu-west-1a", "eu-west-1b"]},
            "settings": {"verticalPodAutoscaler": {"enabled": False}},
        }


def test_a_configuration_that_comes_about_says_what_it_is() -> None:
    config = with_shoot_defaults(a_managed_seed(gardenlet={}), a_child())["spec"]["gardenlet"]["config"]
    assert (config["apiVersion"], config["kind"]) == (
        "gardenlet.config.gardener.cloud/v1alpha1",
        "GardenletConfiguration",
    )


def test_what_is_stated_stays_and_nothing_given_is_changed() -> None:
    spec: Document = {
        "ingress": {"domain": "own.example.org", "controller": {"kind": "other"}},
        "networks": {"nodes": "10.9.0.0/16", "pods": "10.8.0.0/16", "services": "10.7.0.0/16", "shootDefaults": {}},
        "provider": {"type": "gcp", "region": "r", "zones": ["z"]},
        "backup": {"provider": "s3"},
        "dns": {"provider": {"type": "own"}},
        "settings": {"verticalPodAutoscaler": {"enabled": True}},
    }
    managed_seed = in_gardenlet(apiVersion="a", kind="b", seedConfig={"spec": spec})
    assert with_shoot_defaults(managed_seed, a_child()) == managed_seed
    bare = a_managed_seed(seedTemplate={})
    with_shoot_defaults(bare, a_child())
    assert bare == a_managed_seed(seedTemplate={})


def test_taking_over_twice_changes_nothing() -> None:
    once = with_shoot_defaults(a_managed_seed(gardenlet={}), a_child())
    assert with_shoot_defaults(once, a_child()) == once


def test_backup_goes_to_the_provider_of_the_shoot_only_where_there_is_backup() -> None:
    seed = seed_of(with_shoot_defaults(a_managed_seed(seed={"spec": {"backup": {"region": "r"}}}), a_child()))
    assert seed["spec"]["backup"] == {"region": "r", "provider": "aws"}
    assert "backup" not in seed_of(with_shoot_defaults(a_managed_seed(seed={}), a_child()))["spec"]


def test_what_a_shoot_does_not_have_yet_is_left_out() -> None:
    shoot = a_shoot("child", "garden", spec={"networking": None, "provider": {"workers": None}})
    spec = seed_of(with_shoot_defaults(a_managed_seed(seed={}), shoot))["spec"]
    assert "networks" not in spec
    assert "domain" not in spec["ingress"]
    assert spec["provider"] == {"type": "aws", "region": "eu-west-1"}


def dns_provider_of(shoot: Document, host: Document | None = None) -> Any:
    spec = seed_of(with_shoot_defaults(a_managed_seed(seed={}), shoot, host))["spec"]
    return spec.get("dns", {}).get("provider")


def test_names_are_made_by_the_primary_provider_of_the_shoot() -> None:
    providers = [{"type": "other"}, {"type": "aws-route53", "primary": True, "secretName": "s"}]
    own = a_child(dns={"domain": "child.example.org", "providers": providers})
    expected = {"type": "aws-route53", "secretRef": {"name": "s", "namespace": "garden"}}
    assert dns_provider_of(own) == expected
    unmanaged = a_child(dns={"domain": "child.example.org", "providers": [{"type": "unmanaged", "primary": True}]})
    assert dns_provider_of(unmanaged) is None


def test_else_by_that_of_the_default_domain_that_it_lies_below() -> None:
    credentials = {"kind": "Secret", "name": "d", "namespace": "garden"}
    defaults = [{"domain": "org", "type": "x"}, {"domain": "example.org", "type": "y", "credentialsRef": credentials}]
    host = a_seed(spec={"dns": {"defaults": defaults[1:]}})
    assert dns_provider_of(a_child(), host) == {"type": "y", "credentialsRef": credentials}
    assert dns_provider_of(a_child(dns={"domain": "child.example.com"}), host) is None


def test_it_is_labelled_with_the_seeds_of_its_shoot_and_no_others() -> None:
    managed_seed = a_managed_seed(seed={})
    managed_seed["metadata"]["labels"] = {"own": "1", "name.seed.gardener.cloud/left": "true"}
    shoot = a_child(seedName="aws-eu1") | {"status": {"seedName": "aws-eu2"}}
    assert with_shoot_defaults(managed_seed, shoot)["metadata"]["labels"] == {
        "own": "1",
        "name.seed.gardener.cloud/aws-eu1": "true",
        "name.seed.gardener.cloud/aws-eu2": "true",
    }


@pytest.mark.parametrize("workers", [None, 5, [5], [{"zones": None}], [{"zones": [1]}]])
def test_a_malformed_shoot_has_no_zones(workers: Any) -> None:
    assert zones_of_workers({"spec": {"provider": {"workers": workers}}}) == []
