"""The Kubernetes client reads what an API server answers, and translates its errors."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from gardenbus.agent.kubernetes.client import KubernetesClient, client_tls
from gardenbus.agent.kubernetes.discovery import Discovery, Resource
from gardenbus.agent.kubernetes.errors import (
    Expired,
    FieldConflict,
    Throttled,
    Unauthorized,
    Unreachable,
    retry_after,
)
from gardenbus.common.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    GardenbusError,
    InvalidResource,
    Unavailable,
)
from tests.support.eventually import HANG_SECONDS
from tests.support.kube_api import Handler, a_status, an_api_server


@asynccontextmanager
async def a_client(handler: Handler) -> AsyncGenerator[KubernetesClient]:
    async with an_api_server(handler) as url, aiohttp.ClientSession() as session:
        yield KubernetesClient(session, url, ssl.create_default_context(), timeout_seconds=HANG_SECONDS)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (400, BadRequest),
        (401, Unauthorized),
        (403, Forbidden),
        (409, Conflict),
        (410, Expired),
        (418, BadRequest),
        (422, InvalidResource),
        (429, Throttled),
        (500, Unavailable),
        (503, Unavailable),
    ],
)
async def test_a_status_becomes_the_error_that_says_what_to_do(code: int, error: type[GardenbusError]) -> None:
    async with a_client(a_status(code, "because")) as client:
        with pytest.raises(error, match=f"{code} because"):
            await client.request("GET", "/api")


async def test_a_field_that_the_schema_lacks_is_no_reason_to_try_again() -> None:
    async with a_client(a_status(500, ".spec.x: field not declared in schema")) as client:
        with pytest.raises(InvalidResource):
            await client.apply("/api/v1/namespaces/a", {}, manager="me")


async def test_what_is_not_there_is_none_and_an_empty_list_and_nothing_to_delete() -> None:
    async with a_client(a_status(404)) as client:
        assert await client.get("/api/v1/namespaces/a") is None
        assert await client.items("/apis/none/v1/things") == []
        assert not await client.delete("/api/v1/namespaces/a")


async def test_an_object_is_applied_under_the_name_of_its_manager() -> None:
    seen: list[tuple[str, dict[str, str], str, bytes]] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append((request.method, dict(request.query), request.content_type, await request.read()))
        return web.json_response({"kind": "Namespace"})

    async with a_client(handler) as client:
        assert await client.apply("/api/v1/namespaces/a", {"kind": "Namespace"}, manager="me", force=False)
        assert await client.delete("/api/v1/namespaces/a", uid="u1")
    (method, query, content_type, body), (deleted, _, _, options) = seen
    assert (method, content_type, body) == ("PATCH", "application/apply-patch+yaml", b'{"kind":"Namespace"}')
    assert query == {"fieldManager": "me", "force": "false", "fieldValidation": "Strict"}
    assert deleted == "DELETE"
    assert b'"uid":"u1"' in options


async def test_a_server_that_is_away_or_sends_no_json_is_unavailable() -> None:
    async def handler(_request: web.Request) -> web.Response:
        return web.Response(text="<html>")

    async with a_client(handler) as client:
        with pytest.raises(Unavailable, match="no JSON"):
            await client.request("GET", "/api")
    async with aiohttp.ClientSession() as session:
        away = KubernetesClient(session, "http://127.0.0.1:1", ssl.create_default_context())
        with pytest.raises(Unavailable) as error:
            await away.get("/api")
    assert error.value.message.startswith("http://127.0.0.1:1 does not respond: [Errno 111] Connect call failed")
    assert "object at" not in error.value.message  # it would differ each time


def test_certificates_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r"gardenlet\.crt"):
        client_tls(authority=str(tmp_path / "ca.crt"), certificate=str(tmp_path / "gardenlet.crt"), key="none")


async def test_a_server_that_throttles_says_when_to_come_again() -> None:
    async with a_client(a_status(429, headers={"Retry-After": "7"})) as client:
        with pytest.raises(Throttled) as raised:
            await client.get("/api/v1/namespaces/a")
    assert raised.value.retry_after_seconds == 7


@pytest.mark.parametrize(
    ("header", "seconds"), [(None, 1), ("0", 0.1), ("99999", 300), ("Wed, 21 Oct 2026 07:28:00 GMT", 1)]
)
def test_a_pause_is_bounded_whatever_the_header_says(header: str | None, seconds: float) -> None:
    assert retry_after(header) == seconds


async def test_a_conflict_names_the_managers_and_their_fields() -> None:
    causes = [
        {"reason": "FieldManagerConflict", "message": 'conflict with "kubectl" using v1', "field": f".data.{name}"}
        for name in ("a", "b")
    ]
    async with a_client(a_status(409, "Apply failed", details={"causes": causes})) as client:
        with pytest.raises(FieldConflict, match=r"kubectl manages \.data\.a, \.data\.b") as raised:
            await client.apply("/api/v1/namespaces/a/configmaps/b", {}, manager="me", force=False)
    assert [each.manager for each in raised.value.fields] == ["kubectl", "kubectl"]


async def test_a_list_is_read_page_by_page() -> None:
    async def handler(request: web.Request) -> web.Response:
        assert request.query["limit"] == "500"
        if "continue" not in request.query:
            return web.json_response({"items": [{"n": 1}], "metadata": {"continue": "c", "resourceVersion": "7"}})
        return web.json_response({"items": [{"n": 2}], "metadata": {"resourceVersion": "7"}})

    async with a_client(handler) as client:
        assert await client.list_all("/api/v1/pods") == ([{"n": 1}, {"n": 2}], "7")


async def test_a_server_that_is_too_slow_is_unreachable() -> None:
    async def handler(_request: web.Request) -> web.Response:
        await asyncio.sleep(5)
        return web.json_response({})

    async with an_api_server(handler) as url, aiohttp.ClientSession() as session:
        client = KubernetesClient(session, url, ssl.create_default_context(), timeout_seconds=0.05)
        with pytest.raises(Unreachable, match="does not respond"):
            await client.get("/version")


async def test_a_kind_that_is_installed_later_is_found_later_and_others_are_asked_for_once() -> None:
    served = [{"name": "things", "kind": "Thing", "namespaced": True}, {"name": "things/status", "kind": "Thing"}]
    requested: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        requested.append(request.path)
        if request.path != "/apis/example.org/v1":
            return web.json_response({"kind": "Status"}, status=404)
        return web.json_response({"resources": served})

    async with a_client(handler) as client:
        discovery = Discovery(client)
        assert await discovery.find("", "v9", "Pod") is None
        thing = await discovery.find("example.org", "v1", "Thing")
        assert thing == Resource("example.org", "v1", "Thing", "things", namespaced=True)
        assert thing is not None
        assert thing.path("shop", "a/b") == "/apis/example.org/v1/namespaces/shop/things/a%2Fb"
        assert await discovery.find("example.org", "v1", "Late") is None
        served.append({"name": "lates", "kind": "Late", "namespaced": False})
        late = await discovery.find("example.org", "v1", "Late")
        assert late is not None
        assert late.collection("ignored") == "/apis/example.org/v1/lates"
        before = len(requested)
        assert await discovery.find("example.org", "v1", "Thing") == thing
        assert len(requested) == before
