"""A certificate by the Kubernetes API: who has a bootstrap token alone requests it, and comes in by it."""

import base64
import json
import ssl
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import prometheus_client
import pytest

from gardenbus.common.adapters.nats import jetstream
from gardenbus.common.adapters.nats.credentials import read_credentials
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.identity.signing_requests import new_signing_request
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.common.runtime.health import Health
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.credentials import secret_files
from gardenbus.credentials.certificates import key_pem, new_key, new_request
from gardenbus.kubeapi.app import start_kubeapi
from gardenbus.kubeapi.settings import KubeApiSettings
from tests.support.eventually import eventually
from tests.support.guarded_landscape import GuardedLandscape, guarded_landscape
from tests.support.identities import SUBJECTS

HOST = "127.0.0.1"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
CORK = Principal("gardenlet", "aws-cork")


class Served:
    """A guarded landscape with its Kubernetes API."""

    def __init__(self, landscape: GuardedLandscape, session: aiohttp.ClientSession, url: str) -> None:
        self.landscape = landscape
        self._session = session
        self._url = url

    def tls(self, certificate: Path | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.landscape.directory / "ca.crt"))
        if certificate is not None:
            context.load_cert_chain(certificate)
        return context

    def send(self, method: str, path: str, *, token: str = "", certificate: Path | None = None, **options: Any) -> Any:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return self._session.request(
            method, f"{self._url}{path}", headers=headers, ssl=self.tls(certificate), **options
        )

    async def request(self, method: str, path: str, **options: Any) -> tuple[int, dict[str, Any]]:
        async with self.send(method, path, **options) as response:
            return response.status, await response.json()

    async def token(self, **about: str) -> str:
        return (await self.landscape.operator.request("token.create", about))["token"]

    async def certificate_of(self, name: str, **login: Any) -> bytes:
        """The certificate in a request, awaited by a watch as client-go does."""
        query = {"fieldSelector": f"metadata.name={name}"}
        status, listed = await self.request("GET", REQUESTS, params=query, **login)
        assert status == 200, listed
        query |= {"watch": "1", "resourceVersion": "0"}
        async with self.send("GET", REQUESTS, params=query, **login) as response:
            assert response.status == 200
            async for line in response.content:
                found = json.loads(line)["object"].get("status", {}).get("certificate")
                if found:
                    return base64.b64decode(found)
        raise AssertionError


@pytest.fixture
async def served(tmp_path: Path) -> AsyncGenerator[Served]:
    async with guarded_landscape(tmp_path / "landscape") as landscape, aiohttp.ClientSession() as session:
        own = landscape.directory
        assert landscape.keys.authority is not None
        issued = landscape.keys.authority.server([HOST], datetime.now(UTC))
        secret_files.write(own / "server.crt", issued.certificate)
        secret_files.write(own / "server.key", issued.key)
        secret_files.write(own / "kubeapi.nk", landscape.keys.services["kubeapi"].seed.encode())
        settings = KubeApiSettings(
            nats_url=landscape.nats.url,
            kubeapi_port=0,
            kubeapi_certificate=str(own / "server.crt"),
            kubeapi_key=str(own / "server.key"),
            kubeapi_client_ca=str(own / "ca.crt"),
        )
        health = Health(prometheus_client.CollectorRegistry())
        context = ServiceContext("kubeapi", settings, health=health, clock=SystemClock())
        credentials = read_credentials(own / "kubeapi.nk", "kubeapi")
        async with jetstream.connect(
            landscape.nats.url, "kubeapi", credentials=credentials, manages_streams=False
        ) as bus:
            port = await start_kubeapi(context, bus=bus, subjects=SUBJECTS)
            yield Served(landscape, session, f"https://{HOST}:{port}")
            await context.close()


def a_request(name: str, principal: Principal, place: Path) -> tuple[dict[str, Any], Path]:
    """A signing request, and the file of its key."""
    key = new_key()
    file = place / f"{name}.pem"
    file.write_bytes(key_pem(key))
    return new_signing_request(name, new_request(principal, key)), file


async def test_a_token_brings_a_certificate_and_the_certificate_another(served: Served, tmp_path: Path) -> None:
    login: dict[str, Any] = {"token": await served.token(seed="aws-cork")}
    file: Path | None = None
    for name in ("seed-csr-First_1", "seed-csr-Second_2"):
        document, key = a_request(name, CORK, tmp_path)
        for _ in range(2):  # the first response may have been lost
            status, created = await served.request("POST", REQUESTS, json=document, **login)
            assert (status, created["metadata"]["name"]) == (201, name), created
        file = tmp_path / f"{name}.crt"
        file.write_bytes(await served.certificate_of(name, **login) + key.read_bytes())
        login = {"certificate": file}
        status, review = await served.request("POST", REVIEWS, json={}, **login)
        assert (status, review["status"]["userInfo"]["username"]) == (201, "seed:aws-cork")
        status, own = await served.request("GET", f"{REQUESTS}/{name}", **login)
        assert (status, own["metadata"]["name"]) == (200, name)


async def test_a_token_reads_and_writes_nothing_but_its_own_request(served: Served, tmp_path: Path) -> None:
    mine, other = await served.token(seed="aws-cork"), await served.token(seed="gcp-rome")
    document, _ = a_request("one", CORK, tmp_path)
    assert (await served.request("POST", REQUESTS, token=mine, json=document))[0] == 201
    path = f"{REQUESTS}/one"
    assert (await served.request("GET", path, token=mine))[0] == 200
    assert (await served.request("GET", path, token=other))[0] == 403
    assert (await served.request("GET", REQUESTS, token=mine))[0] == 403
    assert (await served.request("GET", "/api/v1/secrets", token=mine))[0] == 403
    assert (await served.request("DELETE", path, token=mine))[0] == 403
    assert (await served.request("PUT", f"{path}/approval", token=mine, json=document))[0] in (400, 403)
    taken, _ = a_request("one", Principal("gardenlet", "gcp-rome"), tmp_path)
    status, found = await served.request("POST", REQUESTS, token=other, json=taken)
    assert (status, found["reason"]) == (409, "AlreadyExists"), found
    status, _ = await served.request("POST", REQUESTS, token="4f2a91.0123456789abcdef", json=document)
    assert status == 401


async def test_a_token_gets_no_certificate_of_another_seed(served: Served, tmp_path: Path) -> None:
    token = await served.token(seed="aws-cork")
    document, _ = a_request("foreign", Principal("gardenlet", "gcp-rome"), tmp_path)
    assert (await served.request("POST", REQUESTS, token=token, json=document))[0] == 201

    async def is_denied() -> None:
        _, found = await served.request("GET", f"{REQUESTS}/foreign", token=token)
        (condition,) = found["status"]["conditions"]
        assert (condition["type"], condition["reason"]) == ("Denied", "NotOwnName")
        assert "certificate" not in found["status"]

    await eventually(is_denied)
