"""The HTTPS server: whose certificate comes in, and bounds on those who only connect, send for ever or watch."""

import asyncio
import contextlib
import ssl
import tracemalloc
from collections.abc import AsyncGenerator, AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from gardenbus.common.api.identity.principals import Principal
from gardenbus.credentials.certificates import Authority, Issued, new_authority
from gardenbus.kubeapi.access.logins import User
from gardenbus.kubeapi.domain.negotiation import Accepted
from gardenbus.kubeapi.domain.request_info import request_info
from gardenbus.kubeapi.requests.responses import ApiRequest
from gardenbus.kubeapi.web import server
from gardenbus.kubeapi.web.application import MOST_BODY_BYTES
from gardenbus.kubeapi.web.server import HttpsServer, listen_on
from gardenbus.kubeapi.web.tls import server_context
from tests.support.eventually import eventually
from tests.support.kube_apis import a_kube_api

HOST = "127.0.0.1"
MAPS = "/api/v1/namespaces/dev/configmaps"
JSON = {"Content-Type": "application/json"}
ELEANOR = Principal("user", "eleanor")


class Served:
    """A server, and clients with certificates."""

    def __init__(self, directory: Path, authority: Authority, port: int) -> None:
        self._directory = directory
        self.authority = authority
        self.port = port

    def client(self, issued: Issued | None) -> ssl.SSLContext:
        """TLS of a client with a certificate, or with none."""
        context = ssl.create_default_context(cafile=str(self._directory / "ca.pem"))
        if issued is not None:
            file = self._directory / "client.pem"
            file.write_bytes(issued.certificate + issued.key)
            context.load_cert_chain(file)
        return context

    async def name(self, issued: Issued | None) -> str:
        """The name by which the server knows a client."""
        url = f"https://{HOST}:{self.port}/"
        async with aiohttp.ClientSession() as session, session.get(url, ssl=self.client(issued)) as response:
            return await response.text()


async def named(request: web.Request) -> web.Response:
    assert request.transport is not None
    certificate: dict[str, Any] = request.transport.get_extra_info("peercert") or {}
    subject: dict[str, str] = dict(pair for part in certificate.get("subject", ()) for pair in part)
    return web.Response(text=subject.get("commonName", ""))


@pytest.fixture
async def served(tmp_path: Path) -> AsyncGenerator[Served]:
    authority_files = new_authority("ours", datetime.now(UTC))
    authority = Authority(authority_files)
    (tmp_path / "ca.pem").write_bytes(authority_files.certificate)
    own = authority.server([HOST], datetime.now(UTC))
    (tmp_path / "server.pem").write_bytes(own.certificate)
    (tmp_path / "server.key").write_bytes(own.key)
    context = server_context(tmp_path / "server.pem", tmp_path / "server.key", str(tmp_path / "ca.pem"))
    application = web.Application()
    application.router.add_get("/", named)
    listening = listen_on(HOST, 0)
    https = HttpsServer(application, listening, context)
    await https.start()
    yield Served(tmp_path, authority, listening.getsockname()[1])
    await https.stop()


async def test_a_client_is_known_by_its_certificate_or_by_none(served: Served) -> None:
    assert await served.name(served.authority.client(ELEANOR, datetime.now(UTC))) == "eleanor"
    assert await served.name(None) == ""


async def test_a_certificate_of_a_foreign_authority_ends_the_connection_and_no_other(served: Served) -> None:
    foreign = Authority(new_authority("theirs", datetime.now(UTC))).client(ELEANOR, datetime.now(UTC))
    with pytest.raises(aiohttp.ClientError):
        await served.name(foreign)
    assert await served.name(None) == ""


async def test_a_connection_without_headers_is_closed_and_others_are_served(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert server.HEADER_SECONDS <= 10
    monkeypatch.setattr(server, "HEADER_SECONDS", 0.3)
    reader, writer = await asyncio.open_connection(HOST, served.port, ssl=served.client(None))
    writer.write(b"GET / HTTP/1.1\r\nHost: slow\r\n")
    assert await served.name(None) == ""
    assert await reader.read() == b""
    writer.close()


async def test_requests_beyond_the_limit_come_again_and_those_in_flight_are_served() -> None:
    goes_on = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b'{"metadata":{"name":"slow"}'
        await goes_on.wait()
        yield b"}"

    async with a_kube_api(most_requests=3) as kube:
        begun = [asyncio.ensure_future(kube.request("POST", MAPS, data=slow(), headers=JSON)) for _ in range(3)]

        async def is_full() -> None:
            response = await kube.request("GET", f"{MAPS}/none")
            assert (response.status, response.headers.get("Retry-After")) == (429, "1")
            assert (await response.json())["reason"] == "TooManyRequests"

        await eventually(is_full)
        goes_on.set()
        assert sorted([(await each).status for each in begun]) == [201, 409, 409]
        assert (await kube.request("GET", f"{MAPS}/slow")).status == 200


async def test_a_body_of_100_megabytes_is_not_read() -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 100 * 1024 * 1024:
            sent += 256 * 1024
            yield b" " * (256 * 1024)

    async with a_kube_api() as kube:
        try:
            response = await kube.request("POST", MAPS, data=endless(), headers=JSON)
        except aiohttp.ClientError:  # the server has closed while it was sent
            pass
        else:
            assert response.status == 413
        assert MOST_BODY_BYTES < sent < 40 * 1024 * 1024
        assert (await kube.request("GET", MAPS)).status == 200


async def test_watches_up_to_the_limit_are_served_and_leave_none() -> None:
    number = 50
    async with a_kube_api(most_watches=number) as kube:
        opened = [await kube.request("GET", MAPS, params={"watch": "1"}) for _ in range(number)]
        assert {each.status for each in opened} == {200}
        assert kube.watches.running == number
        assert (await kube.request("GET", MAPS, params={"watch": "1"})).status == 429
        assert (await kube.request("GET", MAPS)).status == 200
        for each in opened:
            each.close()

        async def are_ended() -> None:
            assert kube.watches.running == 0

        await eventually(are_ended)


async def test_ten_thousand_watches_take_a_few_kilobytes_each() -> None:
    number, most_bytes = 10_000, 8 * 1024
    watched = ApiRequest(request_info("GET", MAPS, {"watch": "1"}), User("operator"), Accepted())
    async with a_kube_api(most_watches=number) as kube, contextlib.AsyncExitStack() as stack:
        assert (await kube.request("POST", MAPS, json={"metadata": {"name": "one"}})).status == 201
        await (await kube.request("GET", MAPS)).read()
        tracemalloc.start()
        for _ in range(number):
            await stack.enter_async_context(kube.watches.open(watched))
        taken, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert kube.watches.running == number
        assert taken / number < most_bytes
        assert (await kube.request("GET", MAPS)).status == 200
