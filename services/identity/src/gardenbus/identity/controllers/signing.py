"""Approves, signs and removes signing requests, and removes bootstrap tokens that ended.

Every replica does this for every request: what one has written the others find done, and a write on an older version
fails. A token is spent before the request is approved that it is spent on, so that a replica that dies in between can
only leave a token that is spent on a request which is still to be approved.

| request | kept for | source |
|---|---|---|
| with a certificate | the certificate's life: it is the record of it | |
| that waits | 24 h | Kubernetes' `certificates/cleaner` |
| denied, failed | 1 h | the same |
"""

import contextlib
from datetime import datetime, timedelta
from typing import NamedTuple, assert_never

import structlog

from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.identity import signing_requests
from gardenbus.common.api.identity.bootstrap_tokens import is_token_secret, read_token
from gardenbus.common.api.identity.signing_requests import SigningRequest, read_signing_request, with_condition
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.delaying_queue import DelayingQueue
from gardenbus.common.controller.wait import RETRY_SECONDS
from gardenbus.common.errors import BadRequest, NotFound
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.common.ports.store import EventRecord, Store
from gardenbus.credentials.certificates import read_certificate, requested_principal, serial_of
from gardenbus.identity import metrics
from gardenbus.identity.adapters.signing_authority import SigningAuthority
from gardenbus.identity.domain.approval import WAITING_LIFE, Approve, Deny, NotOurs, Wait, certifiable_principal, decide
from gardenbus.identity.registry import IssuedCertificates

KINDS = ("certificatesigningrequest", "secret")
ENDED_LIFE = timedelta(hours=1)
RIVAL_SECONDS = 5.0
"""Interval at which a request is looked at that waits for the decision about another one."""
REPORTER = "identity"

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class _Step(NamedTuple):
    """A request's new state; None: there is nothing to do for `after_seconds` (None: for ever)."""

    stored: StoredObject | None
    after_seconds: float | None = None


class SigningController:
    """Subscribe `changed` to informers of `KINDS` (Secrets: those of bootstrap tokens)."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        certificates: IssuedCertificates,
        authority: SigningAuthority,
    ) -> None:
        self._store = store
        self._clock = clock
        self._certificates = certificates
        self._authority = authority
        self.queue: DelayingQueue[ObjectKey] = DelayingQueue(
            self.reconcile, clock=clock, controller="signing", retry_seconds=RETRY_SECONDS
        )

    def changed(self, key: ObjectKey, _old: StoredObject | None, new: StoredObject | None) -> None:
        """Enqueue a request, or a token."""
        if new is not None and (key.kind == signing_requests.SINGULAR or is_token_secret(key)):
            self.queue.add(key)

    async def reconcile(self, key: ObjectKey) -> float | None:
        """Reconcile a request or a token by its state in the store. Raises Transient."""
        stored = await self._store.get(key)
        if stored is None:
            return None
        if is_token_secret(key):
            return await self._remove_ended_token(stored)
        while True:
            step = await self._next(stored, read_signing_request(stored))
            if step.stored is None:
                return step.after_seconds
            stored = step.stored

    async def _next(self, stored: StoredObject, request: SigningRequest) -> _Step:
        now = self._clock.now()
        if request.certificate:
            return await self._remove_at(stored, request.not_after or now, now)
        if request.is_denied or request.is_failed:
            return await self._remove_at(stored, request.created_at + ENDED_LIFE, now)
        if request.signer != signing_requests.SIGNER:
            return _Step(None)
        if request.is_approved:
            return await self._sign(stored, request, now)
        if request.created_at + WAITING_LIFE <= now:
            return await self._remove_at(stored, now, now)
        return await self._decide(stored, request, now)

    async def _decide(self, stored: StoredObject, request: SigningRequest, now: datetime) -> _Step:
        token = await self._certificates.token_of(request)
        facts = await self._certificates.facts(request, token, await self._certificates.revocations(), now)
        match decision := decide(request, facts):
            case Approve():
                if token is not None:
                    await self._certificates.spend(token, request)
                return await self._conclude(stored, signing_requests.APPROVED, "AutoApproved", decision.message)
            case Deny():
                step = await self._conclude(stored, signing_requests.DENIED, decision.reason, decision.message)
                await self._note_denied(request, decision)
                return step
            case Wait():
                log.info("request.waiting", request=request.name, user=request.username, reason=decision.message)
                if decision.is_short:
                    return _Step(None, RIVAL_SECONDS)
                return _Step(None, (request.created_at + WAITING_LIFE - now).total_seconds())
            case NotOurs():
                return _Step(None)
            case _:
                assert_never(decision)

    async def _sign(self, stored: StoredObject, request: SigningRequest, now: datetime) -> _Step:
        try:
            principal = certifiable_principal(request)
            pem = self._authority.sign(request, now)
        except BadRequest as error:
            return await self._conclude(stored, signing_requests.FAILED, "SigningFailed", error.message)
        if (await self._certificates.revocations()).rejects(principal.user, issued_at=request.created_at):
            text = f"the credentials of {principal.user} were revoked since it was sent"
            return await self._conclude(stored, signing_requests.FAILED, "Revoked", text)
        certificate = read_certificate(pem)
        serial, expires = serial_of(certificate), timestamp(certificate.not_valid_after_utc)
        issued = signing_requests.with_certificate(
            stored.document(), pem, serial=serial, not_after=expires, user=principal.user
        )
        written = await self._write(stored, issued)
        metrics.CERTIFICATES.labels("issued").inc()
        about = {"user": principal.user, "requester": request.username, "request": request.name}
        log.info("certificate.issued", **about, serial=serial, expires=expires)
        return written

    async def _conclude(self, stored: StoredObject, kind: str, reason: str, message: str) -> _Step:
        now = timestamp(self._clock.now())
        return await self._write(stored, with_condition(stored.document(), kind, reason, message, now))

    async def _write(self, stored: StoredObject, document: Document) -> _Step:
        written = await self._store.update(stored, document)
        assert isinstance(written, StoredObject)
        return _Step(written)

    async def _note_denied(self, request: SigningRequest, decision: Deny) -> None:
        """Count it, write the line for the audit, and record an Event on the Seed that it was for."""
        metrics.CERTIFICATES.labels("denied").inc()
        about = {"user": request.username, "request": request.name}
        log.warning("certificate.denied", **about, reason=decision.reason, message=decision.message)
        try:
            principal = requested_principal(request.pem)
        except BadRequest:
            return
        if principal.role != "gardenlet":
            return
        seed = await self._store.get(ObjectKey("seed", "", principal.name))
        if seed is not None:
            text = f"request {request.name} of {request.username} was denied: {decision.message}"
            await self._store.record_event(
                EventRecord(seed.key, seed.uid, "Warning", f"Certificate{decision.reason}", text, REPORTER, "Deny")
            )

    async def _remove_at(self, stored: StoredObject, at: datetime, now: datetime) -> _Step:
        if at > now:
            return _Step(None, (at - now).total_seconds())
        with contextlib.suppress(NotFound):  # another replica was faster
            await self._store.delete(stored)
        return _Step(None)

    async def _remove_ended_token(self, stored: StoredObject) -> float | None:
        try:
            token = read_token(stored.document())
        except BadRequest as error:
            log.warning("token.unreadable", secret=str(stored.key), reason=error.message)
            return None
        now = self._clock.now()
        if token.expires <= now:
            log.info("token.removed", id=token.token.id, spent=bool(token.spent_by))
        return (await self._remove_at(stored, token.expires, now)).after_seconds
