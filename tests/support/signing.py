"""An apiserver and a signing controller on a store in memory: requests are sent, and what became of them is read."""

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from gardenbus.apiserver.access.audit_log import AuditLog
from gardenbus.apiserver.access.authorizer import Authorizer
from gardenbus.apiserver.domain.request_subjects import api_filters
from gardenbus.apiserver.registry.read_cache import ManifestCache
from gardenbus.apiserver.registry.seed_binder import SeedBinder
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.apiserver.requests.api import ApiHandler
from gardenbus.common.api.document import Document
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.identity.revocations import revocation
from gardenbus.common.api.identity.signing_requests import SINGULAR, key_of_request, new_signing_request
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.credentials.certificates import Authority, new_authority, new_key, new_request
from gardenbus.identity.adapters.signing_authority import SigningAuthority
from gardenbus.identity.controllers.signing import SigningController
from gardenbus.identity.domain.requests_cache import RequestsCache
from gardenbus.identity.registry import IssuedCertificates
from gardenbus.relay.ports.outbox import EventEntry
from tests.support.clocks import FakeClock
from tests.support.memory.bus import MemoryBus
from tests.support.memory.store import MemoryStore

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
SUBJECTS = Subjects()


class Signing:
    """Everything that decides about certificates, without servers."""

    def __init__(self, directory: Path, life: timedelta = timedelta(days=30)) -> None:
        self.clock = FakeClock(START)
        self.store = MemoryStore(self.clock)
        self.bus = MemoryBus(self.clock)
        issued = new_authority("gardenbus", START)
        self.authority = Authority(issued)
        (directory / "ca.crt").write_bytes(issued.certificate)
        (directory / "ca.key").write_bytes(issued.key)
        self.requests = RequestsCache()
        self.controller = SigningController(
            store=self.store,
            clock=self.clock,
            certificates=IssuedCertificates(self.store, self.requests),
            authority=SigningAuthority(directory / "ca.crt", directory / "ca.key", life),
        )

    async def revoke(self, user: str) -> None:
        """Revoke what a user was issued until now."""
        await self.store.create(revocation(user, self.clock.now(), "stolen"))

    async def start(self) -> None:
        """Serve the API."""
        handler = ApiHandler(
            bus=self.bus,
            store=self.store,
            clock=self.clock,
            subjects=SUBJECTS,
            writer=Writer(self.store, self.clock),
            seed_binder=SeedBinder(self.store, self.clock),
            manifests=ManifestCache(self.store),
            authorizer=Authorizer(self.store, AuditLog(self.clock), is_enforced=True),
            concurrency=8,
        )
        await self.bus.serve("apiserver", "1.0.0", dict.fromkeys(api_filters(SUBJECTS), handler.handle))

    async def respond(self, user: str, tail: str, body: object = None, *, is_outside: bool = True) -> Document:
        """The whole response to a request of a user, from outside of the services' account unless said otherwise."""
        headers: Mapping[str, str] = {"Nats-Request-Info": json.dumps({"user": user})} if is_outside else {}
        payload = json.dumps(body).encode() if body is not None else b""
        return json.loads(await self.bus.request(SUBJECTS.as_user(user, f"api.{tail}"), payload, headers=headers))

    async def result(self, user: str, tail: str, body: object = None, *, is_outside: bool = True) -> Any:
        """The result of a request that is taken."""
        response = await self.respond(user, tail, body, is_outside=is_outside)
        assert response["ok"], response["error"]
        return response["result"]

    async def token(self, **about: Any) -> str:
        """A new bootstrap token, of the operator's."""
        return (await self.result("operator", "token.create", about, is_outside=False))["token"]

    async def query(
        self,
        user: str,
        principal: Principal,
        *,
        name: str = "csr-1",
        key: ec.EllipticCurvePrivateKey | None = None,
        seconds: int | None = None,
    ) -> Document:
        """Send a request for a certificate, and have it decided about; what became of it."""
        manifest = new_signing_request(name, new_request(principal, key or new_key()), expiration_seconds=seconds)
        await self.result(user, "csr.create", manifest)
        return await self.decided(name)

    async def decided(self, name: str) -> Document:
        """Have a request decided about; what became of it."""
        await self.observe()
        self.after = await self.controller.reconcile(key_of_request(name))
        await self.observe()
        stored = await self.store.get(key_of_request(name))
        return stored.document() if stored is not None else {}

    async def observe(self) -> None:
        """Have the cache of requests see all that is stored."""
        self.requests.__init__()
        for stored in (await self.store.list_page(SINGULAR)).objects:
            self.requests.changed(stored.key, None, stored)

    def warnings(self) -> list[tuple[str, str]]:
        """Objects and reasons of all Warning Events."""
        events = [entry.event for entry in self.store.state.outbox if isinstance(entry, EventEntry)]
        return [(str(event.about), event.reason) for event in events if event.type == "Warning"]

    async def secret(self, token_id: str) -> Document:
        """The data of a token's Secret, as text."""
        stored = await self.store.get(ObjectKey("secret", "kube-system", f"bootstrap-token-{token_id}"))
        data: dict[str, str] = stored.document()["data"] if stored is not None else {}
        return {name: base64.b64decode(value).decode() for name, value in data.items()}


def reasons(request: Document) -> dict[str, str]:
    """The conditions of a request, and their reasons."""
    return {each["type"]: each["reason"] for each in request.get("status", {}).get("conditions", ())}
