"""Requests about certificates: `csr.create`, `csr.get`, `csr.approve`, `csr.deny`.

| subject behind `api.` | body | who | result |
|---|---|---|---|
| `csr.create` | a CertificateSigningRequest | anybody, in their own name | the request, with its username and groups |
| `csr.get` | `{"name"}` | who created it | the request, with its certificate once it is issued |
| `csr.approve`, `csr.deny` | `{"name", "message"?}` | operators | the request |
"""

from typing import Any

import msgspec

from gardenbus.apiserver.call import Call
from gardenbus.apiserver.domain.operators import check_operator
from gardenbus.apiserver.domain.request_rate import RequestRate
from gardenbus.apiserver.domain.validation.metadata import key_of
from gardenbus.apiserver.registry.preconditions import Precondition
from gardenbus.apiserver.registry.read_cache import ReadCache
from gardenbus.apiserver.registry.retry_on_conflict import StaleVersion
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.field_validation import FieldValidation
from gardenbus.common.api.identity import signing_requests
from gardenbus.common.api.manifests.parser import parse
from gardenbus.common.api.request_bodies import SigningRequestName
from gardenbus.common.errors import AlreadyExists, BadRequest, Conflict, Forbidden, NotFound
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.common.ports.store import Store

MOST_BYTES = 32 * 1024
"""Of a request for a certificate: one by a key on P-256 has less than 2 KiB, with RSA's longest keys 6."""

_ATTEMPTS = 10


class SigningRequests:
    """Handles them. Raises Terminal, NotFound, Conflict, Unavailable."""

    def __init__(self, store: Store, clock: Clock, writer: Writer) -> None:
        self._store = store
        self._clock = clock
        self._writer = writer
        self._rate = RequestRate()

    async def on_csr_create(self, call: Call) -> Any:
        """Store a request in the sender's own name; the same again returns what is stored."""
        if not call.is_operator:
            self._rate.take(call.user, self._clock.monotonic())
        created = await self._create(call.body, user=call.user, reads=call.reads)
        call.done()
        return created

    async def on_csr_get(self, call: Call) -> Any:
        """A request of the sender's own."""
        own = await self._own(call.read(SigningRequestName).name, call.user)
        return msgspec.Raw(own.encoded())

    async def on_csr_approve(self, call: Call) -> Any:
        """Approve a request."""
        return await self._decided(call, signing_requests.APPROVED)

    async def on_csr_deny(self, call: Call) -> Any:
        """Deny a request."""
        return await self._decided(call, signing_requests.DENIED)

    async def _decided(self, call: Call, decision: str) -> Any:
        check_operator(call.user, is_operator=call.is_operator)
        decided = await self._decide(call.read(SigningRequestName), decision, call.user)
        call.done()
        return decided

    async def _create(self, body: bytes, *, user: str, reads: ReadCache) -> Any:
        if len(body) > MOST_BYTES:
            raise BadRequest(f"a {signing_requests.KIND} has at most {MOST_BYTES} bytes, not {len(body)}")
        documents = parse(body)
        if len(documents) != 1 or documents[0].get("kind") != signing_requests.KIND:
            raise BadRequest(f"send one {signing_requests.KIND} of {signing_requests.API_VERSION}")
        sent = documents[0]
        key = key_of(sent)
        given: Document = {field: sent[field] for field in ("apiVersion", "kind", "spec") if field in sent}
        given["metadata"] = {"name": key.name}
        absent = Precondition(key, 0)
        try:
            written = await self._writer.apply(
                given, reads, user=user, condition=absent, validation=FieldValidation.STRICT
            )
        except (StaleVersion, Conflict):
            return _same(await self._store.get(key), given, user)
        assert written.stored is not None
        return msgspec.Raw(written.stored.encoded())

    async def _own(self, name: str, user: str) -> StoredObject:
        stored = await self._store.get(signing_requests.key_of_request(name))
        if stored is None or section(stored.document(), "spec").get("username") != user:
            raise NotFound(f"there is no request {name[:253]!r} of {user}")
        return stored

    async def _decide(self, body: SigningRequestName, decision: str, user: str) -> Any:
        for _ in range(_ATTEMPTS):
            stored = await self._store.get(signing_requests.key_of_request(body.name))
            if stored is None:
                raise NotFound(f"there is no request {body.name[:253]!r}")
            decided = _decided(stored.document(), decision, body.message or f"by {user}", timestamp(self._clock.now()))
            try:
                updated = await self._store.update(stored, decided)
            except Conflict:
                continue
            assert isinstance(updated, StoredObject)
            return msgspec.Raw(updated.encoded())
        raise Conflict(f"the request {body.name[:253]!r} keeps changing: try again")


def _decided(document: Document, decision: str, message: str, now: str) -> Document:
    """Decided by an operator. Raises Forbidden when it was decided otherwise before: decisions stay."""
    other = signing_requests.DENIED if decision == signing_requests.APPROVED else signing_requests.APPROVED
    if signing_requests.has_condition(document, other):
        raise Forbidden(
            f"the request was {other.lower()} before, and stays so: revoke its certificate, or send a new request"
        )
    if signing_requests.has_condition(document, decision):
        return document
    return signing_requests.with_condition(document, decision, f"{decision}ByOperator", message, now)


def _same(stored: StoredObject | None, given: Document, user: str) -> Any:
    """The request that is there already: it was sent twice. Raises AlreadyExists when it is another one."""
    if stored is None:
        raise Conflict("the request was removed meanwhile: send it again")
    there = section(stored.document(), "spec")
    if there.get("username") != user or there.get("request") != section(given, "spec").get("request"):
        raise AlreadyExists(f"{stored.key} is there already, of another key: give it another name")
    return msgspec.Raw(stored.encoded())
