"""Outages: while the bus, the apiserver or the store is away nothing is accepted that is not stored."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from gardenbus.common.api.document import encode
from gardenbus.common.api.keys import Header, ObjectKey
from gardenbus.common.api.verbs import verb_of
from gardenbus.common.errors import NoResponse
from gardenbus.common.ports.bus import Headers, Message
from gardenbus.common.ports.store import VERSION_LEAP
from tests.support.builders import a_seed
from tests.support.eventually import eventually
from tests.support.kube_apis import SUBJECTS, KubeApi, a_kube_api

MAPS = "/api/v1/namespaces/dev/configmaps"
MERGE = {"Content-Type": "application/merge-patch+json"}
LEASES = "/apis/coordination.k8s.io/v1/namespaces/gardener-system-seed-lease/leases"


def a_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def a_lease() -> dict[str, Any]:
    spec = {"holderIdentity": "me", "leaseDurationSeconds": 2, "renewTime": "2026-01-02T03:04:05.000000Z"}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"}, "spec": spec}


WRITES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "create": ("POST", MAPS, {"json": a_map("two")}),
    "update": ("PUT", f"{MAPS}/one", {"json": {**a_map("one"), "data": {"a": "b"}}}),
    "patch": ("PATCH", f"{MAPS}/one", {"json": {"data": {"a": "b"}}, "headers": MERGE}),
    "delete": ("DELETE", f"{MAPS}/one", {}),
    "delete a collection": ("DELETE", MAPS, {}),
    "get the newest": ("GET", f"{MAPS}/one", {}),
    "renew a Lease": ("POST", LEASES, {"json": a_lease(), "user": "seed:a"}),
}


@pytest.fixture
async def kube() -> AsyncGenerator[KubeApi]:
    async with a_kube_api() as found:
        await found.store.create(a_seed("a"))
        assert (await found.request("POST", MAPS, json=a_map("one"))).status == 201
        assert (await found.request("GET", MAPS)).status == 200
        assert (await found.request("GET", f"{MAPS}/one", params={"resourceVersion": "0"})).status == 200
        yield found


async def is_unavailable(kube: KubeApi, request: str) -> None:
    method, path, options = WRITES[request]
    response = await kube.request(method, path, **options)
    assert (response.status, response.headers.get("Retry-After")) == (503, "1"), await response.text()
    assert (await response.json())["reason"] == "ServiceUnavailable"


@pytest.mark.parametrize("request_name", WRITES)
async def test_without_the_bus_a_request_comes_again_and_cached_reads_go_on(kube: KubeApi, request_name: str) -> None:
    kube.bus.cut()
    await is_unavailable(kube, request_name)
    for path in (MAPS, f"{MAPS}/one"):
        cached = await kube.request("GET", path, params={"resourceVersion": "0"})
        assert cached.status == 200, await cached.text()
    assert (await kube.request("GET", MAPS)).status == 503
    await kube.bus.mend()
    listed = await (await kube.request("GET", MAPS)).json()
    assert [(each["metadata"]["name"], each.get("data")) for each in listed["items"]] == [("one", None)]


async def test_without_the_bus_it_is_alive_and_not_ready(kube: KubeApi) -> None:
    async def page(path: str) -> tuple[int, str]:
        response = await kube.request("GET", path, user="")
        return response.status, await response.text()

    for path in ("/healthz", "/livez", "/readyz", "/readyz/", "/readyz/nats", "/livez/ping"):
        assert await page(path) == (200, "ok")
    assert await page("/readyz?verbose") == (200, "[+]ping ok\n[+]nats ok\nreadyz check passed\n")
    assert (await page("/livez/nats"))[0] == 404
    kube.bus.cut()
    warning = 'warn: some health checks cannot be excluded: no matches for "etcd"'
    failed = "[+]ping ok\n[-]nats failed: reason withheld\n"
    assert await page("/readyz") == (500, f"{failed}readyz check failed\n")
    assert await page("/healthz") == (500, f"{failed}healthz check failed\n")
    assert await page("/readyz/nats") == (500, "internal server error: not connected\n")
    assert await page("/readyz?exclude=nats") == (200, "ok")
    status, text = await page("/readyz?verbose&exclude=nats&exclude=etcd")
    assert (status, text.splitlines()) == (200, ["[+]ping ok", "[+]nats excluded: ok", warning, "readyz check passed"])
    assert await page("/livez") == (200, "ok")
    await kube.bus.mend()
    assert await page("/readyz") == (200, "ok")


@pytest.mark.parametrize("request_name", ["create", "update", "patch", "delete"])
async def test_what_the_store_does_not_take_is_not_accepted(kube: KubeApi, request_name: str) -> None:
    await kube.stop_relay()
    kube.store.close_for_writes()
    await is_unavailable(kube, request_name)


@pytest.mark.parametrize("request_name", ["create", "update", "patch", "delete", "get the newest"])
async def test_a_write_whose_response_is_lost_is_not_sent_again_by_itself(
    kube: KubeApi, monkeypatch: pytest.MonkeyPatch, request_name: str
) -> None:
    method, path, options = WRITES[request_name]
    carry_out, is_read = kube.bus.request, method == "GET"

    async def lost(subject: str, body: bytes, *, headers: Headers = {}, timeout_seconds: float = 10.0) -> bytes:
        response = await carry_out(subject, body, headers=headers, timeout_seconds=timeout_seconds)
        verb, _ = verb_of(subject.partition(".api.")[2])
        if verb is not None and (verb.writes or (is_read and verb.name == "get")):
            raise NoResponse("the connection was lost")
        return response

    monkeypatch.setattr(kube.bus, "request", lost)
    response = await kube.request(method, path, **options)
    status, again = response.status, response.headers.get("Retry-After")
    found = await response.json()
    if is_read:
        assert (status, again, found["reason"]) == (503, "1", "ServiceUnavailable")
    else:
        assert (status, again, found["reason"]) == (504, None, "Timeout"), found
        assert "retryAfterSeconds" not in found["details"]
        assert "whether it was carried out is unknown" in found["message"]


async def test_a_heartbeat_whose_acknowledgement_is_lost_is_not_sent_again_by_itself(
    kube: KubeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = kube.bus.publish

    async def lost(message: Message, *, expected_subject_sequence: int | None = None) -> int:
        await publish(message, expected_subject_sequence=expected_subject_sequence)
        raise NoResponse("no response on LEASES within 5 s")

    monkeypatch.setattr(kube.bus, "publish", lost)
    method, path, options = WRITES["renew a Lease"]
    response = await kube.request(method, path, **options)
    found = await response.json()
    assert (response.status, response.headers.get("Retry-After"), found["reason"]) == (504, None, "Timeout"), found
    assert "whether it was stored is unknown" in found["message"]


async def test_a_store_that_was_opened_anew_is_followed_from_there(kube: KubeApi) -> None:
    one = await (await kube.request("GET", f"{MAPS}/one")).json()
    version = str(int(one["metadata"]["resourceVersion"]) + 2 * VERSION_LEAP)
    body = encode({**one, "metadata": {**one["metadata"], "resourceVersion": version}})
    headers = {Header.VERSION: version, Header.UID: one["metadata"]["uid"], Header.SETTLED: version}
    subject = SUBJECTS.changed(ObjectKey("configmap", "dev", "one"))
    await kube.bus.publish(Message(subject, body, {**headers, Header.VERB: "updated"}))

    async def is_listed() -> None:
        listed = await (await kube.request("GET", MAPS, params={"resourceVersion": "0"})).json()
        assert [each["metadata"]["resourceVersion"] for each in listed["items"]] == [version]

    await eventually(is_listed)
