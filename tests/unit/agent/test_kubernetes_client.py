"""The Kubernetes client reads what an API server answers, and translates its errors."""

import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from gardenbus.agent.kubernetes.client import KubernetesClient, client_tls
from gardenbus.common.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    GardenbusError,
    InvalidResource,
    Unavailable,
)

Handler = Callable[[web.Request], Awaitable[web.Response]]


@asynccontextmanager
async def a_client(handler: Handler) -> AsyncGenerator[KubernetesClient]:
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    async with aiohttp.ClientSession() as session:
        yield KubernetesClient(session, f"http://127.0.0.1:{port}", ssl.create_default_context(), timeout_seconds=2)
    await runner.cleanup()


def status(code: int, message: str = "no") -> Handler:
    async def handler(_request: web.Request) -> web.Response:
        return web.json_response({"kind": "Status", "message": message}, status=code)

    return handler


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (400, BadRequest),
        (401, Forbidden),
        (403, Forbidden),
        (409, Conflict),
        (410, Conflict),
        (418, BadRequest),
        (422, InvalidResource),
        (429, Unavailable),
        (500, Unavailable),
        (503, Unavailable),
    ],
)
async def test_a_status_becomes_the_error_that_says_what_to_do(code: int, error: type[GardenbusError]) -> None:
    async with a_client(status(code, "because")) as client:
        with pytest.raises(error, match=f"{code} because"):
            await client.request("GET", "/api")


async def test_a_field_that_the_schema_lacks_is_no_reason_to_try_again() -> None:
    async with a_client(status(500, ".spec.x: field not declared in schema")) as client:
        with pytest.raises(InvalidResource):
            await client.apply("/api/v1/namespaces/a", {}, manager="me")


async def test_what_is_not_there_is_none_and_an_empty_list_and_nothing_to_delete() -> None:
    async with a_client(status(404)) as client:
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
        with pytest.raises(Unavailable, match="does not answer"):
            await away.get("/api")


def test_certificates_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r"gardenlet\.crt"):
        client_tls(authority=str(tmp_path / "ca.crt"), certificate=str(tmp_path / "gardenlet.crt"), key="none")
