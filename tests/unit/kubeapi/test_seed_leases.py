"""Leases of seeds over HTTP: a gardenlet's heartbeats, on the bus, and nobody else's."""

import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.support.builders import a_seed
from tests.support.kube_apis import KubeApi, a_kube_api

LEASES = "/apis/coordination.k8s.io/v1/namespaces/gardener-system-seed-lease/leases"
MERGE = {"Content-Type": "application/merge-patch+json"}
GARDENLET = "seed:a"


@pytest.fixture
async def kube() -> AsyncGenerator[KubeApi]:
    async with a_kube_api() as found:
        await found.store.create(a_seed("a"))
        yield found


def a_lease(name: str = "a", renewed: str = "2026-01-02T03:04:05.000000Z", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name},
        "spec": {"holderIdentity": "me", "leaseDurationSeconds": 2, "renewTime": renewed, **spec},
    }


async def response_to(kube: KubeApi, method: str, path: str, user: str = GARDENLET, **options: Any) -> tuple[int, Any]:
    async with kube.request(method, path, user=user, **options) as response:
        return response.status, await response.json()


async def test_a_gardenlet_creates_its_lease_once_and_renews_it_by_patches(kube: KubeApi) -> None:
    code, made = await response_to(kube, "POST", LEASES, json=a_lease())
    assert (code, made["metadata"]["namespace"]) == (201, "gardener-system-seed-lease")
    code, again = await response_to(kube, "POST", LEASES, json=a_lease())
    assert (code, again["reason"]) == (409, "AlreadyExists")

    patch = {"spec": {"renewTime": "2026-01-02T03:04:07.000000Z"}}
    code, renewed = await response_to(kube, "PATCH", f"{LEASES}/a", json=patch, headers=MERGE)

    assert code == 200
    assert renewed["metadata"]["uid"] == made["metadata"]["uid"]
    assert int(renewed["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
    code, read = await response_to(kube, "GET", f"{LEASES}/a")
    assert (code, read["spec"]["renewTime"], read["spec"]["holderIdentity"]) == (
        200,
        "2026-01-02T03:04:07.000000Z",
        "me",
    )


async def test_an_update_of_another_version_conflicts(kube: KubeApi) -> None:
    _, made = await response_to(kube, "POST", LEASES, json=a_lease())
    code, put = await response_to(
        kube, "PUT", f"{LEASES}/a", json={**made, "spec": a_lease(holderIdentity="you")["spec"]}
    )
    assert (code, put["spec"]["holderIdentity"]) == (200, "you")

    code, stale = await response_to(kube, "PUT", f"{LEASES}/a", json=made)

    assert (code, stale["reason"]) == (409, "Conflict")


@pytest.mark.parametrize("user", ["seed:b", "operator", "ann"])
async def test_nobody_but_the_gardenlet_of_the_seed_sends_its_heartbeat(kube: KubeApi, user: str) -> None:
    for method, path, body in (("POST", LEASES, a_lease()), ("PUT", f"{LEASES}/a", a_lease())):
        code, status = await response_to(kube, method, path, user=user, json=body)
        assert (code, status["reason"]) == (403, "Forbidden")
        assert "renewed by its gardenlet alone" in status["message"]
    assert (await response_to(kube, "GET", f"{LEASES}/a", user="operator"))[0] == 404


async def test_an_operator_sends_none_as_a_gardenlet(kube: KubeApi) -> None:
    headers = {"Impersonate-User": GARDENLET}
    assert (await response_to(kube, "POST", LEASES, user="operator", json=a_lease(), headers=headers))[0] == 400
    assert (await response_to(kube, "GET", f"{LEASES}/a"))[0] == 404


async def test_a_lease_that_is_not_there_is_not_found_and_a_dry_run_makes_none(kube: KubeApi) -> None:
    assert (await response_to(kube, "PUT", f"{LEASES}/a", json=a_lease()))[0] == 404
    assert (await response_to(kube, "POST", LEASES, params={"dryRun": "All"}, json=a_lease()))[0] == 201
    assert (await response_to(kube, "GET", f"{LEASES}/a"))[0] == 404


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"renewTime": None}, "spec.renewTime"),
        ({"leaseDurationSeconds": 0}, "spec.leaseDurationSeconds"),
        ({"holderIdentity": 1}, "spec.holderIdentity"),
    ],
)
async def test_what_is_no_heartbeat_is_invalid_and_names_the_field(
    kube: KubeApi, spec: dict[str, Any], field: str
) -> None:
    code, status = await response_to(kube, "POST", LEASES, json=a_lease(**spec))
    assert code == 422
    assert [each["field"] for each in status["details"]["causes"]] == [field]


async def test_other_leases_are_objects_of_whoever_may_write_them(kube: KubeApi) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/garden/leases"
    assert (await response_to(kube, "POST", path, user="operator", json=a_lease("leader")))[0] == 201


async def test_a_lease_is_watched_by_its_name_from_its_first_state_to_each_renewal(kube: KubeApi) -> None:
    await response_to(kube, "POST", LEASES, json=a_lease())
    query = {"watch": "1", "fieldSelector": "metadata.name=a", "timeoutSeconds": "5"}
    initial = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    watch = await kube.request("GET", LEASES, params={**query, **initial}, user=GARDENLET)
    assert watch.status == 200, await watch.text()
    events = [json.loads(await watch.content.readline()) for _ in range(2)]
    assert [each["type"] for each in events] == ["ADDED", "BOOKMARK"]
    assert events[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}

    patch = {"spec": {"renewTime": "2026-01-02T03:04:07.000000Z"}}
    _, renewed = await response_to(kube, "PATCH", f"{LEASES}/a", json=patch, headers=MERGE)

    event = json.loads(await watch.content.readline())
    assert (event["type"], event["object"]) == ("MODIFIED", renewed)
    watch.close()


async def test_a_gardenlet_lists_and_watches_no_lease_but_its_own(kube: KubeApi) -> None:
    await response_to(kube, "POST", LEASES, json=a_lease())
    for query, user, expected in (
        ({"fieldSelector": "metadata.name=a"}, GARDENLET, 200),
        ({"fieldSelector": "metadata.name=a"}, "seed:b", 403),
        ({}, GARDENLET, 403),
    ):
        code, listed = await response_to(kube, "GET", LEASES, params=query, user=user)
        assert code == expected
        assert code == 403 or [each["metadata"]["name"] for each in listed["items"]] == ["a"]
        watch = await kube.request("GET", LEASES, params={**query, "watch": "1", "timeoutSeconds": "1"}, user=user)
        assert watch.status == expected
        watch.close()
