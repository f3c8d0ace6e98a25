"""Discovery, OpenAPI, tables and Status objects, as clients read them."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from gardenbus.common.errors import Conflict, Forbidden, GardenbusError, NotFound
from gardenbus.kubeapi.domain import discovery, openapi
from gardenbus.kubeapi.domain.resources import RESOURCES, groups, resource_named
from gardenbus.kubeapi.domain.statuses import Rejected, ResourceExpired, TooLargeVersion, status_of
from gardenbus.kubeapi.domain.tables import columns_of, human_duration, table

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SHOOT = {
    "apiVersion": "core.gardener.cloud/v1beta1",
    "kind": "Shoot",
    "metadata": {
        "name": "apollo",
        "creationTimestamp": "2026-03-01T11:00:00Z",
        "labels": {"shoot.gardener.cloud/status": "healthy"},
    },
    "spec": {"cloudProfile": {"name": "aws"}, "region": "eu", "hibernation": {"enabled": True}},
    "status": {"lastOperation": {"type": "Create", "state": "Processing", "progress": 43}},
}


def test_each_resource_is_in_the_aggregated_discovery_and_in_its_groups() -> None:
    aggregated = {
        (group["metadata"].get("name", ""), version["version"], resource["resource"])
        for core in (True, False)
        for group in discovery.aggregated("v2", core=core)["items"]
        for version in group["versions"]
        for resource in version["resources"]
    }
    assert aggregated == {(each.group, each.version, each.plural) for each in RESOURCES}
    for group, versions in groups().items():
        for version, resources in versions.items():
            listed = discovery.resource_list(group, version)
            assert listed is not None
            assert {each.plural for each in resources} <= {entry["name"] for entry in listed["resources"]}


def test_a_short_name_belongs_to_one_resource() -> None:
    names = [name for each in RESOURCES for name in each.short_names]
    assert sorted(names) == sorted(set(names))
    assert "sa" in resource_named("serviceaccount").short_names


def test_no_two_resources_share_a_path() -> None:
    paths = [(each.group, each.version, each.plural) for each in RESOURCES]
    assert len(paths) == len(set(paths))


@pytest.mark.parametrize("name", list(openapi.names()))
def test_each_document_of_openapi_describes_the_kinds_of_its_group(name: str) -> None:
    document = msgspec.json.decode(openapi.document(name))
    schemas = document["components"]["schemas"]
    kinds = {each["kind"] for schema in schemas.values() for each in schema.get("x-kubernetes-group-version-kind", ())}
    group, version = ("", name.removeprefix("api/")) if name.startswith("api/") else name.split("/")[1:]
    assert {each.kind for each in groups()[group][version]} <= kinds
    for operations in document["paths"].values():
        for method, operation in operations.items():
            assert operation["x-kubernetes-action"]
            if method == "patch":
                assert "application/strategic-merge-patch+json" not in operation["requestBody"]["content"]
                assert "fieldValidation" in {each["name"] for each in operation["parameters"]}


def test_the_dns_of_a_shoot_is_explained_in_a_sentence() -> None:
    document = msgspec.json.decode(openapi.document("apis/core.gardener.cloud/v1beta1"))
    shoot = document["components"]["schemas"]["cloud.gardener.core.v1beta1.Shoot"]
    dns = shoot["properties"]["spec"]["properties"]["dns"]
    assert "Domain" in dns["description"]
    assert "providers" in dns["properties"]


def test_a_shoot_has_gardeners_columns() -> None:
    found = table("shoot", [SHOOT], NOW, version=7)
    names = [each["name"] for each in found["columnDefinitions"]]
    cells = dict(zip(names, found["rows"][0]["cells"], strict=True))
    assert cells["Name"] == "apollo"
    assert cells["CloudProfile"] == "aws"
    assert cells["Hibernation"] == "Hibernating"
    assert cells["Last Operation"] == "Create Processing (43%)"
    assert cells["Status"] == "healthy"
    assert cells["Age"] == "60m"
    assert found["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    assert found["metadata"] == {"resourceVersion": "7"}


@pytest.mark.parametrize(
    ("enabled", "hibernated", "shown"),
    [(False, False, "Awake"), (True, False, "Hibernating"), (True, True, "Hibernated"), (False, True, "Waking Up")],
)
def test_hibernation_is_shown_in_gardeners_words(enabled: bool, hibernated: bool, shown: str) -> None:
    shoot = {**SHOOT, "spec": {"hibernation": {"enabled": enabled}}, "status": {"isHibernated": hibernated}}
    found = table("shoot", [shoot], NOW, version=7)
    assert shown in found["rows"][0]["cells"]


def test_every_kind_has_a_name_among_its_columns_and_a_cell_for_an_empty_object() -> None:
    for each in RESOURCES:
        names = [column.name for column in columns_of(each.singular)]
        assert "Name" in names
        empty = table(each.singular, [{"metadata": {}}], NOW, version=None)
        assert len(empty["rows"][0]["cells"]) == len(names)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (5, "5s"),
        (119, "119s"),
        (250, "4m10s"),
        (3600, "60m"),
        (11100, "3h5m"),
        (50 * 3600, "2d2h"),
        (86400 * 30, "30d"),
    ],
)
def test_ages_are_written_as_kubectl_does(seconds: int, text: str) -> None:
    assert human_duration(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(
    ("error", "code", "reason", "message"),
    [
        (NotFound("x"), 404, "NotFound", 'shoots.core.gardener.cloud "apollo" not found'),
        (Forbidden("no"), 403, "Forbidden", 'shoots.core.gardener.cloud "apollo" is forbidden: no'),
        (Conflict("old"), 409, "Conflict", 'Operation cannot be fulfilled on shoots.core.gardener.cloud "apollo": old'),
        (ResourceExpired("old"), 410, "Expired", "old"),
        (Rejected(400, "Unsupported", "what"), 400, "BadRequest", "what"),
        (
            Rejected(422, "Invalid", "Shoot garden-dev/apollo is invalid: bad"),
            422,
            "Invalid",
            'Shoot.core.gardener.cloud "apollo" is invalid: bad',
        ),
    ],
)
def test_an_error_is_a_status_in_kubernetes_words(error: GardenbusError, code: int, reason: str, message: str) -> None:
    status = status_of(error, resource_named("shoot"), "apollo")
    assert (status["code"], status["reason"], status["message"]) == (code, reason, message)
    kinds = {"BadRequest": None, "Invalid": None}
    assert status["details"].get("kind") == kinds.get(reason, "shoots")


def test_a_version_that_is_not_reached_says_so_in_its_causes() -> None:
    status = status_of(TooLargeVersion("later"))
    assert status["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert status["details"]["retryAfterSeconds"] == 1
