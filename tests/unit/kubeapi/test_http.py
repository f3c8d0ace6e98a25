"""Requests over HTTP, from the socket to the store and back."""

import asyncio
import base64
import gzip
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from gardenbus.kubeapi.access import authorizer, logins
from gardenbus.kubeapi.domain.openapi import SECOND
from gardenbus.kubeapi.requests import watches
from tests.support.builders import a_project, a_seed
from tests.support.eventually import eventually
from tests.support.kube_apis import KubeApi, a_kube_api

MAPS = "/api/v1/namespaces/dev/configmaps"
MERGE = {"Content-Type": "application/merge-patch+json"}


@pytest.fixture
async def kube() -> AsyncGenerator[KubeApi]:
    async with a_kube_api(most_watches=1) as found:
        yield found


def a_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def created(kube: KubeApi, name: str, **data: str) -> dict[str, Any]:
    response = await kube.request("POST", MAPS, json=a_map(name, **data))
    assert response.status == 201, await response.text()
    return await response.json()


async def test_health_and_version_are_for_everybody_and_nothing_else_is(kube: KubeApi) -> None:
    assert (await kube.request("GET", "/livez", user="")).status == 200
    for path in ("/version", "/version/"):  # as clients join paths
        assert (await (await kube.request("GET", path, user="")).json())["gitVersion"] == "v1.34.4"
    for path in ("/api", "/apis", MAPS, "/openapi/v3", "/nothing"):
        response = await kube.request("GET", path, user="")
        assert response.status == 401
        assert (await response.json())["reason"] == "Unauthorized"


async def test_the_second_openapi_has_no_schemas_and_names_the_third(kube: KubeApi) -> None:
    response = await kube.request("GET", "/openapi/v2", headers={"Accept": SECOND})
    assert response.headers["Content-Type"] == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    assert b"/openapi/v3" in await response.read()
    response = await kube.request("GET", "/openapi/v2")
    assert (response.status, (await response.json())["reason"]) == (406, "NotAcceptable")


async def test_a_wrong_password_is_rejected(kube: KubeApi) -> None:
    wrong = base64.b64encode(b"operator:wrong").decode()
    response = await kube.request("GET", MAPS, user="", headers={"Authorization": f"Bearer {wrong}"})
    assert response.status == 401


async def test_what_was_written_is_in_the_next_list(kube: KubeApi) -> None:
    for number in range(5):
        await created(kube, f"map-{number}")
        listed = await (await kube.request("GET", MAPS)).json()
        assert [each["metadata"]["name"] for each in listed["items"]] == [f"map-{each}" for each in range(number + 1)]


async def test_a_list_goes_on_where_its_page_ended(kube: KubeApi) -> None:
    for number in range(5):
        await created(kube, f"map-{number}")
    names: list[str] = []
    query = {"limit": "2"}
    while True:
        listed = await (await kube.request("GET", MAPS, params=query)).json()
        names += [each["metadata"]["name"] for each in listed["items"]]
        if "continue" not in listed["metadata"]:
            break
        query["continue"] = listed["metadata"]["continue"]
    assert names == [f"map-{number}" for number in range(5)]


async def test_an_object_is_created_once_and_changed_on_its_version(kube: KubeApi) -> None:
    first = await created(kube, "one", a="b")
    again = await kube.request("POST", MAPS, json=a_map("one"))
    assert (again.status, (await again.json())["reason"]) == (409, "AlreadyExists")
    patched = await kube.request("PATCH", f"{MAPS}/one", data=b'{"data":{"c":"d"}}', headers=MERGE)
    assert (await patched.json())["data"] == {"a": "b", "c": "d"}
    nulled = b'{"data":{"a":null,"e":"f"},"status":{"phase":"gone"}}'
    patched = await (await kube.request("PATCH", f"{MAPS}/one", data=nulled, headers=MERGE)).json()
    assert (patched["data"], "status" in patched) == ({"c": "d", "e": "f"}, False), "a merge patch removes what is null"
    stale = await kube.request("PUT", f"{MAPS}/one", json={**first, "data": {}})
    assert (stale.status, (await stale.json())["reason"]) == (409, "Conflict")
    replaced = await kube.request("PUT", f"{MAPS}/one", json=a_map("one", e="f"))
    assert (await replaced.json())["data"] == {"e": "f"}


async def test_a_dry_run_writes_nothing(kube: KubeApi) -> None:
    response = await kube.request("POST", MAPS, params={"dryRun": "All"}, json=a_map("one"))
    assert response.status == 201
    assert (await kube.request("GET", f"{MAPS}/one")).status == 404


async def test_a_failed_test_of_a_patch_is_invalid(kube: KubeApi) -> None:
    await created(kube, "one", a="b")
    patch = b'[{"op":"test","path":"/data/a","value":"x"}]'
    headers = {"Content-Type": "application/json-patch+json"}
    response = await kube.request("PATCH", f"{MAPS}/one", data=patch, headers=headers)
    assert response.status == 422
    status = await response.json()
    assert status["message"] == "operation 0 (test): /data/a is 'b', not 'x'"
    assert status["details"] == {}, "so that kubectl prints the message"


async def test_a_patch_that_doubles_a_value_again_and_again_is_invalid(kube: KubeApi) -> None:
    await created(kube, "one", a="b")
    patch = [{"op": "copy", "from": "/data", "path": f"/data/{number}"} for number in range(60)]
    headers = {"Content-Type": "application/json-patch+json"}
    response = await kube.request("PATCH", f"{MAPS}/one", json=patch, headers=headers)
    assert response.status == 422
    assert "the copies of one patch add 3,145,728 bytes at most" in (await response.json())["message"]


async def test_an_apply_needs_its_manager_and_creates_what_is_not_there(kube: KubeApi) -> None:
    headers = {"Content-Type": "application/apply-patch+yaml"}
    body = json.dumps(a_map("one", a="b")).encode()
    missing = await kube.request("PATCH", f"{MAPS}/one", data=body, headers=headers)
    assert missing.status == 422
    applied = await kube.request("PATCH", f"{MAPS}/one", data=body, headers=headers, params={"fieldManager": "me"})
    assert applied.status == 201
    again = await kube.request("PATCH", f"{MAPS}/one", data=body, headers=headers, params={"fieldManager": "me"})
    assert again.status == 200


async def test_a_secret_without_a_type_is_opaque(kube: KubeApi) -> None:
    secrets = "/api/v1/namespaces/dev/secrets"
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one"}, "data": {"a": "Yg=="}}
    made = await (await kube.request("POST", secrets, json=secret)).json()
    assert made["type"] == "Opaque"
    put = await kube.request("PUT", f"{secrets}/one", json={**secret, "data": {"a": "Yw=="}})
    assert (put.status, (await put.json())["type"]) == (200, "Opaque")
    headers = {"Content-Type": "application/apply-patch+yaml"}
    applied = {**secret, "metadata": {"name": "two"}}
    options: dict[str, Any] = {"data": json.dumps(applied), "headers": headers, "params": {"fieldManager": "me"}}
    found = await (await kube.request("PATCH", f"{secrets}/two", **options)).json()
    (owner,) = found["metadata"]["managedFields"]
    assert (found["type"], "f:type" in owner["fieldsV1"]) == ("Opaque", False)


async def test_a_deletion_depends_on_its_preconditions(kube: KubeApi) -> None:
    one = await created(kube, "one")
    wrong = await kube.request("DELETE", f"{MAPS}/one", json={"preconditions": {"uid": "another"}})
    assert wrong.status == 409
    right = await kube.request("DELETE", f"{MAPS}/one", json={"preconditions": {"uid": one["metadata"]["uid"]}})
    assert (right.status, (await right.json())["status"]) == (200, "Success")
    assert (await kube.request("DELETE", f"{MAPS}/one")).status == 404


async def test_a_collection_is_deleted_by_its_selector(kube: KubeApi) -> None:
    for name, label in (("one", "x"), ("two", "y"), ("three", "x")):
        document = a_map(name)
        document["metadata"]["labels"] = {"l": label}
        assert (await kube.request("POST", MAPS, json=document)).status == 201
    assert (await kube.request("DELETE", MAPS, params={"labelSelector": "l=x"})).status == 200
    listed = await (await kube.request("GET", MAPS)).json()
    assert [each["metadata"]["name"] for each in listed["items"]] == ["two"]


async def test_a_watch_follows_a_list_and_ends_when_its_time_is_over(kube: KubeApi) -> None:
    await created(kube, "one")
    version = (await (await kube.request("GET", MAPS)).json())["metadata"]["resourceVersion"]
    query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "1", "allowWatchBookmarks": "true"}
    async with kube.request("GET", MAPS, params=query) as response:
        await created(kube, "two")
        lines = [json.loads(line) async for line in response.content]
    assert [(each["type"], each["object"]["metadata"].get("name")) for each in lines] == [
        ("ADDED", "two"),
        ("BOOKMARK", None),
    ]


async def test_watches_beyond_the_limit_are_told_to_come_again(kube: KubeApi) -> None:
    async with kube.request("GET", MAPS, params={"watch": "1"}):
        second = await kube.request("GET", MAPS, params={"watch": "1"})
        assert second.status == 429
        assert second.headers["Retry-After"] == "1"


async def test_people_see_what_their_rights_allow(kube: KubeApi) -> None:
    await created(kube, "one")
    for path in (MAPS, f"{MAPS}/one"):
        response = await kube.request("GET", path, user="ann")
        assert (response.status, (await response.json())["reason"]) == (403, "Forbidden")
    watch = await kube.request("GET", MAPS, user="ann", params={"watch": "true"})
    assert watch.status == 403
    seeds = await kube.request("GET", "/apis/core.gardener.cloud/v1beta1/seeds", user="ann")
    assert seeds.status == 200


async def test_reviews_say_who_one_is_and_what_one_may(kube: KubeApi) -> None:
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    myself = await (await kube.request("POST", path, user="ann", json={})).json()
    assert myself["status"]["userInfo"]["username"] == "ann"
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    for verb, resource, allowed in (("list", "seeds", True), ("delete", "seeds", False), ("list", "nothings", False)):
        spec = {"resourceAttributes": {"verb": verb, "resource": resource}}
        review = await (await kube.request("POST", path, user="ann", json={"spec": spec})).json()
        assert review["status"]["allowed"] is allowed
    token = await kube.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", user="ann", json={})
    assert token.status == 403


async def test_forms_and_encodings_are_those_that_a_client_takes(kube: KubeApi) -> None:
    await created(kube, "one", a="x" * 200_000)
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
    shown = await (await kube.request("GET", MAPS, headers=accept)).json()
    assert shown["kind"] == "Table"
    assert shown["rows"][0]["cells"][:2] == ["one", 1]
    text = await (await kube.request("GET", f"{MAPS}/one", headers={"Accept": "application/yaml"})).text()
    assert text.startswith("apiVersion: v1")
    response = await kube.request("GET", MAPS, headers={"Accept-Encoding": "gzip"})
    assert response.headers["Content-Encoding"] == "gzip"
    accept = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
    response = await kube.request("GET", "/apis", headers=accept)
    assert "as=APIGroupDiscoveryList" in response.headers["Content-Type"]


async def test_a_body_that_is_too_long_inflated_or_broken_is_rejected(kube: KubeApi) -> None:
    bomb = gzip.compress(b" " * (4 * 1024 * 1024))
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    response = await kube.request("POST", MAPS, data=bomb, headers=headers)
    assert response.status == 413
    broken = await kube.request("POST", MAPS, data=b"{", headers={"Content-Type": "application/json"})
    assert (broken.status, (await broken.json())["reason"]) == (400, "BadRequest")
    odd = await kube.request("POST", MAPS, data=b"{}", headers={"Content-Type": "application/cbor"})
    assert odd.status == 415


async def test_a_list_of_a_version_that_nobody_has_seen_is_too_large(kube: KubeApi) -> None:
    await created(kube, "one")
    response = await asyncio.wait_for(kube.request("GET", MAPS, params={"resourceVersion": "99999999999999999"}), 60)
    assert response.status == 504
    assert (await response.json())["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


def an_event(*, namespace: str = "dev", **fields: Any) -> dict[str, Any]:
    about = {"kind": "ConfigMap", "namespace": "dev", "name": "one"}
    named = {"generateName": "one-", "namespace": namespace}
    core = {"involvedObject": about, "reason": "Noted", "message": "by a client", "type": "Normal"}
    return {"apiVersion": "v1", "kind": "Event", "metadata": named, **core, **fields}


async def test_an_event_is_recorded_in_the_name_of_its_client(kube: KubeApi) -> None:
    await created(kube, "one")
    events = "/api/v1/namespaces/dev/events"
    response = await kube.request("POST", events, json=an_event())
    assert response.status == 201, await response.text()
    newer = {
        "metadata": {"name": "two", "namespace": "dev"},
        "regarding": {"kind": "ConfigMap", "namespace": "dev", "name": "one"},
        "reason": "Seen",
        "note": "by a newer client",
        "type": "Warning",
        "reportingController": "example.org/one",
        "eventTime": "2026-01-01T00:00:00.000000Z",
    }
    response = await kube.request("POST", "/apis/events.k8s.io/v1/namespaces/dev/events", json=newer)
    assert response.status == 201, await response.text()

    async def both() -> dict[str, Any]:
        listed = await (await kube.request("GET", events)).json()
        found = {each["reason"]: each for each in listed["items"]}
        assert {"Noted", "Seen"} <= found.keys()
        return found

    recorded = await eventually(both)
    assert recorded["Noted"]["message"] == "by a client"
    assert recorded["Seen"]["message"] == "by a newer client"
    assert {each["reportingComponent"] for each in recorded.values()} == {"operator"}
    assert {each["involvedObject"]["name"] for each in recorded.values()} == {"one"}


@pytest.mark.parametrize(
    ("event", "code", "text"),
    [
        (an_event(involvedObject={}), 422, "involvedObject: name the kind"),
        (an_event(involvedObject={"kind": "ConfigMap", "name": "one", "namespace": "x"}), 422, "does not match"),
        (an_event(involvedObject={"kind": "Seed", "name": "one"}), 422, "does not match the Event's, dev"),
        (an_event(involvedObject={"kind": "Pod", "name": "one", "namespace": "dev"}), 422, "involvedObject.kind"),
        (an_event(involvedObject={"kind": "ConfigMap", "name": "no", "namespace": "dev"}), 404, "not found"),
        (an_event(type="Loud"), 400, "type: must be one of"),
        (an_event(reason=""), 400, "reason: is needed"),
    ],
)
async def test_an_event_about_nothing_is_rejected(kube: KubeApi, event: dict[str, Any], code: int, text: str) -> None:
    response = await kube.request("POST", "/api/v1/namespaces/dev/events", json=event)
    assert response.status == code
    assert text in (await response.json())["message"]


async def test_an_event_that_nobody_has_seen_cannot_be_patched(kube: KubeApi) -> None:
    path = "/apis/events.k8s.io/v1/namespaces/dev/events/no"
    response = await kube.request("PATCH", path, data=b'{"series":{"count":2}}', headers=MERGE)
    assert (response.status, (await response.json())["reason"]) == (404, "NotFound")


SEED = "/apis/core.gardener.cloud/v1beta1/seeds/one"


async def a_stored_seed(kube: KubeApi) -> dict[str, Any]:
    manifest = a_seed("one")
    response = await kube.request("POST", SEED.removesuffix("/one"), json=manifest)
    assert response.status == 201, await response.text()
    return await response.json()


async def test_a_status_is_written_by_its_subresource_and_nothing_else_is(kube: KubeApi) -> None:
    stored = await a_stored_seed(kube)
    true = {
        "type": "Seen",
        "status": "True",
        "reason": "A",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    sent = {"metadata": {"labels": {"a": "b"}}, "spec": {"taints": [{"key": "x"}]}, "status": {"conditions": [true]}}
    patched = await kube.request("PATCH", f"{SEED}/status", json=sent, headers=MERGE)
    assert patched.status == 200, await patched.text()
    after = await patched.json()
    assert after["status"]["conditions"] == [true]
    assert "a" not in after["metadata"].get("labels", {})
    assert after["spec"] == stored["spec"]
    assert after["metadata"]["generation"] == stored["metadata"]["generation"]

    other = {**true, "type": "Heard"}
    strategic = {"Content-Type": "application/strategic-merge-patch+json"}
    merged = await kube.request("PATCH", f"{SEED}/status", json={"status": {"conditions": [other]}}, headers=strategic)
    assert [each["type"] for each in (await merged.json())["status"]["conditions"]] == ["Seen", "Heard"]

    operations = [{"op": "replace", "path": "/status/conditions/0/status", "value": "False"}]
    json_patch = {"Content-Type": "application/json-patch+json"}
    replaced = await kube.request("PATCH", f"{SEED}/status", json=operations, headers=json_patch)
    assert (await replaced.json())["status"]["conditions"][0]["status"] == "False"

    put = await replaced.json()
    put = {**put, "spec": {}, "status": {"conditions": [other]}}
    response = await kube.request("PUT", f"{SEED}/status", json=put)
    assert response.status == 200, await response.text()
    assert (await response.json())["status"] == {"conditions": [other]}
    response = await kube.request("PUT", f"{SEED}/status", json=put)
    assert (response.status, (await response.json())["reason"]) == (409, "Conflict"), "its version is an old one"


async def test_a_status_is_dry_run_validated_and_for_operators_alone(kube: KubeApi) -> None:
    await a_stored_seed(kube)
    sent = {"status": {"observedGeneration": 7}}
    dry = await kube.request("PATCH", f"{SEED}/status?dryRun=All", json=sent, headers=MERGE)
    assert (await dry.json())["status"]["observedGeneration"] == 7
    assert "observedGeneration" not in (await (await kube.request("GET", SEED)).json()).get("status", {})
    wrong = await kube.request("PATCH", f"{SEED}/status", json={"status": {"conditions": "many"}}, headers=MERGE)
    assert (wrong.status, (await wrong.json())["reason"]) == (422, "Invalid")
    stranger = await kube.request("PATCH", f"{SEED}/status", json=sent, headers=MERGE, user="ann")
    assert (stranger.status, (await stranger.json())["reason"]) == (403, "Forbidden")
    missing = await kube.request("PATCH", f"{SEED}2/status", json=sent, headers=MERGE)
    assert missing.status == 404
    scalar = await kube.request("PATCH", f"{SEED}/status", json={"status": 1}, headers=MERGE)
    assert scalar.status == 400


async def ended_by(kube: KubeApi, user: str, path: str = MAPS) -> dict[str, Any]:
    """The Status in the last event of a watch of ConfigMaps by a user."""
    watch = await kube.request("GET", path, params={"watch": "1", "resourceVersion": "0"}, user=user)
    assert watch.status == 200, await watch.text()
    last = b""
    async for line in watch.content:
        last = line
    event = json.loads(last)
    assert event["type"] == "ERROR"
    return event["object"]


@pytest.fixture
def _reviewed_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logins and rights are looked at again at once; the sum of the three is below 15 s."""
    assert watches.REVIEW_SECONDS + max(logins.FRESH_SECONDS, authorizer.FRESH_SECONDS) < 15
    monkeypatch.setattr(watches, "REVIEW_SECONDS", 0.05)
    monkeypatch.setattr(logins, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(authorizer, "FRESH_SECONDS", 0.0)


@pytest.mark.usefixtures("_reviewed_often")
async def test_a_token_that_is_revoked_ends_the_watches_that_it_opened(kube: KubeApi) -> None:
    ending = asyncio.create_task(ended_by(kube, "operator"))

    async def runs() -> None:
        assert not ending.done()
        assert kube.watches.running == 1

    await eventually(runs)
    kube.revoked.add("operator")
    status = await ending
    assert (status["code"], status["reason"]) == (401, "Unauthorized")
    assert (await kube.request("GET", MAPS)).status == 401


@pytest.mark.usefixtures("_reviewed_often")
async def test_a_member_who_is_removed_from_a_project_has_its_watches_ended(kube: KubeApi) -> None:
    path = "/apis/core.gardener.cloud/v1beta1/projects"
    ann = {"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io", "role": "admin"}
    response = await kube.request("POST", path, json=a_project(spec={"members": [ann]}))
    assert response.status == 201, await response.text()
    maps = MAPS.replace("/dev/", "/garden-dev/")
    ending = asyncio.create_task(ended_by(kube, "ann", maps))

    async def runs() -> None:
        assert not ending.done()
        assert kube.watches.running == 1

    await eventually(runs)
    removed = await kube.request("PATCH", f"{path}/dev", json={"spec": {"members": []}}, headers=MERGE)
    assert removed.status == 200, await removed.text()
    status = await ending
    assert (status["code"], status["reason"]) == (403, "Forbidden")
