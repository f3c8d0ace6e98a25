"""What of a shoot is settled with its seed."""

from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.binding_defaults import with_seed_defaults
from tests.support.builders import a_seed, a_shoot, merged

SEED = a_seed(
    spec={
        "dns": {"defaults": [{"domain": "example.com"}, {"domain": "example.org"}]},
        "networks": {"shootDefaults": {"pods": "100.96.0.0/11", "services": "100.64.0.0/13"}},
    }
)
OPEN = a_shoot(spec={"networking": {"pods": None, "services": None}})


def bound(shoot: Document, seed: Document = SEED) -> Document:
    return with_seed_defaults(shoot, seed, "dev") or shoot["spec"]


def test_an_open_shoot_gets_domain_and_networks_of_its_seed() -> None:
    spec = bound(OPEN)
    assert spec["dns"] == {"domain": "apollo.dev.example.com"}
    assert spec["networking"] == {
        "type": "calico",
        "nodes": "10.0.0.0/16",
        "pods": "100.96.0.0/11",
        "services": "100.64.0.0/13",
    }
    assert "seedName" not in spec
    assert "pods" not in OPEN["spec"]["networking"]


def test_what_the_shoot_states_stays() -> None:
    shoot = a_shoot(spec={"dns": {"domain": "shop.my-company.org"}})
    assert with_seed_defaults(shoot, SEED, "dev") is None


def test_a_seed_that_offers_nothing_changes_nothing() -> None:
    assert with_seed_defaults(OPEN, a_seed(), "dev") is None


@pytest.mark.parametrize(
    ("changes", "domain"),
    [
        ({"dns": {"providers": [{"type": "unmanaged"}]}}, None),
        ({"dns": {"providers": [{"type": "aws-route53"}]}}, "apollo.dev.example.com"),
        ({"dns": {"domain": ""}}, "apollo.dev.example.com"),
    ],
)
def test_a_domain_is_made_only_where_dns_is_managed(changes: dict[str, Any], domain: str | None) -> None:
    assert bound(merged(OPEN, {"spec": changes}))["dns"].get("domain") == domain


def test_a_workerless_shoot_gets_services_alone() -> None:
    spec = bound(merged(OPEN, {"spec": {"provider": {"workers": []}}}))
    assert "pods" not in spec["networking"]
    assert spec["networking"]["services"] == "100.64.0.0/13"


def test_defaults_of_another_family_are_not_taken() -> None:
    spec = bound(merged(OPEN, {"spec": {"networking": {"ipFamilies": ["IPv6"]}}}))
    assert "pods" not in spec["networking"]


def test_a_shoot_without_networking_gets_it_as_admission_would_have_it() -> None:
    assert bound(a_shoot(spec={"networking": None}))["networking"] == {
        "ipFamilies": ["IPv4"],
        "pods": "100.96.0.0/11",
        "services": "100.64.0.0/13",
    }


def test_without_a_project_there_is_no_domain() -> None:
    spec = with_seed_defaults(OPEN, SEED, None)
    assert spec is not None
    assert "dns" not in spec
