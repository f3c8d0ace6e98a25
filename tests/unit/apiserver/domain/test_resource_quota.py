"""ResourceQuota: which objects are counted, and what a quota may say. Counting itself: tests/contract/store."""

from typing import Any

import pytest

from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.plugins import resource_quota
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.apiserver.domain.validation.manifest import validate
from gardenbus.common.api.document import Document
from gardenbus.common.api.resource_quotas import count_resource, counted_kind, quota_lines
from gardenbus.common.errors import InvalidResource
from tests.support.builders import a_seed, a_shoot

CHAIN = Admission([resource_quota.PLUGIN])
NOTHING = RelatedObjects()


def a_quota(**spec: Any) -> Document:
    """A ResourceQuota."""
    metadata = {"namespace": "garden-dev", "name": "gardener"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}


def test_a_creation_in_a_namespace_is_guarded_and_nothing_else_is() -> None:
    shoot = a_shoot()

    (guard,) = CHAIN.write_guards(shoot, None, NOTHING)

    assert (guard.kind, guard.message) == ("quota", 'shoots.core.gardener.cloud "apollo" is forbidden')
    assert CHAIN.write_guards(shoot, shoot, NOTHING) == ()
    assert CHAIN.write_guards(a_seed(), None, NOTHING) == ()


@pytest.mark.parametrize(
    ("resource", "kind"),
    [
        ("count/shoots.core.gardener.cloud", "shoot"),
        ("count/credentialsbindings.security.gardener.cloud", "credentialsbinding"),
        ("count/secrets", "secret"),
        ("secrets", "secret"),
        ("services", "service"),
        ("count/deployments.apps", "deployment"),
        ("shoots.core.gardener.cloud", ""),
        ("count/shoots", ""),
        ("count/seeds.core.gardener.cloud", ""),  # they are in no namespace
        ("pods", ""),
        ("requests.cpu", ""),
    ],
)
def test_a_resource_counts_a_kind_or_none(resource: str, kind: str) -> None:
    assert counted_kind(resource) == kind


def test_objects_of_kinds_that_nobody_registered_have_a_resource_too() -> None:
    assert count_resource("shoot", "core.gardener.cloud/v1beta1") == "count/shoots.core.gardener.cloud"
    assert count_resource("widget", "dns.gardener.cloud/v1") == "count/widget.dns.gardener.cloud"


@pytest.mark.parametrize(
    ("spec", "lines"),
    [
        ({}, ()),
        ({"hard": {"pods": "1"}}, ('{"pods":"1"}',)),
        ({"hard": {"secrets": "1k"}}, ('{"secrets":"1k"}', 'secret 1000 "secrets"')),
        ({"hard": {"secrets": 5}, "scopes": ["BestEffort"]}, ('{"secrets":5}',)),
        ({"hard": {"secrets": "x", "services": []}}, ('{"secrets":"x","services":[]}',)),
    ],
)
def test_the_store_gets_the_limits_as_lines(spec: Document, lines: tuple[str, ...]) -> None:
    assert quota_lines(spec) == lines


@pytest.mark.parametrize("value", ["-1", "1.5", "many", [], None])
def test_a_value_that_counts_no_objects_is_refused(value: object) -> None:
    with pytest.raises(InvalidResource, match=r"spec\.hard\.secrets"):
        validate(a_quota(hard={"secrets": value}), None)


def test_other_resources_may_be_fractions_and_are_warned_of() -> None:
    quota = a_quota(hard={"requests.cpu": "1500m", "count/secrets": "3"})
    validate(quota, None)

    (warning,) = CHAIN.mutate(quota, None, NOTHING, user="alice").warnings

    assert warning.startswith("spec.hard[requests.cpu]: nothing acts on it")
    assert "pods" in CHAIN.mutate(a_quota(scopes=["BestEffort"]), None, NOTHING, user="alice").warnings[0]
