"""Facts that requests are decided on: their token, what was issued before, and what was revoked."""

import contextlib
from collections.abc import AsyncGenerator
from datetime import datetime
from typing import NamedTuple

from gardenbus.common.api.document import StoredObject, section
from gardenbus.common.api.identity.bootstrap_tokens import BootstrapToken, key_of_token, read_token, spent
from gardenbus.common.api.identity.principals import Principal, principal_of
from gardenbus.common.api.identity.revocations import REVOCATIONS, Revocations, revocations_in
from gardenbus.common.api.identity.signing_requests import SINGULAR, SigningRequest, read_signing_request
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import BadRequest
from gardenbus.common.ports.clock import parse_timestamp
from gardenbus.common.ports.store import Store
from gardenbus.credentials.certificates import requested_principal
from gardenbus.identity.domain.approval import WAITING_LIFE, ApprovalFacts, spender
from gardenbus.identity.domain.requests_cache import RequestsCache

_BOOTSTRAPPER = "bootstrap:"
_STATED_BY = {"gardenlet": "seed", "member-agent": "membercluster"}
"""Kinds whose status says when the certificate of a principal's role ends."""


class StoredToken(NamedTuple):
    """A bootstrap token, and the Secret that it was read from."""

    secret: StoredObject
    token: BootstrapToken


class IssuedCertificates:
    """Facts from the cache of requests, and from the store where another replica may have been faster."""

    def __init__(self, store: Store, requests: RequestsCache) -> None:
        self._store = store
        self._requests = requests

    async def revocations(self) -> Revocations:
        """Revocations as they stand in the store: a removal revokes, and nothing is signed on an older state."""
        stored = await self._store.get(REVOCATIONS)
        return revocations_in(stored) if stored is not None else Revocations()

    async def token_of(self, request: SigningRequest) -> StoredToken | None:
        """The requester's bootstrap token, as it stands in the store."""
        try:
            requester = principal_of(request.username)
            if requester.role != "bootstrap":
                return None
            stored = await self._store.get(key_of_token(requester.name))
            return StoredToken(stored, read_token(stored.document())) if stored is not None else None
        except BadRequest:
            return None

    async def spend(self, token: StoredToken, request: SigningRequest) -> None:
        """Spend a token on a request, unless that was done. Raises Conflict when it was spent on another meanwhile."""
        if not token.token.spent_by:
            await self._store.update(token.secret, spent(token.secret.document(), spender(request)))

    async def facts(
        self, request: SigningRequest, token: StoredToken | None, revoked: Revocations, now: datetime
    ) -> ApprovalFacts:
        """Facts of a decision about a request."""
        try:
            principal = requested_principal(request.pem)
        except BadRequest:
            return ApprovalFacts()
        issued = self._requests.issued_to(principal)
        last_issued_at = issued[-1].created_at if issued else None
        ends = self._requests.living_ends(principal, revoked, now)
        lives_until = max(ends, default=None)
        if lives_until is None and not revoked.rejects(principal.user, issued_at=last_issued_at):
            lives_until = await self._stated_end(principal, now)
        facts = ApprovalFacts(
            token=token.token if token else None,
            same_key=self._requests.with_same_key(request),
            lives_until=lives_until,
            living=len(ends),
            is_revoked=revoked.rejects(request.username, issued_at=last_issued_at),
            is_outdated=revoked.rejects(principal.user, issued_at=request.created_at),
        )
        if token is None or token.token.bound_to is not None:
            return facts
        return await self._with_rivals(facts, request, principal, revoked, now)

    async def _with_rivals(
        self, facts: ApprovalFacts, request: SigningRequest, principal: Principal, revoked: Revocations, now: datetime
    ) -> ApprovalFacts:
        """Facts with what the store has for the same principal: of two tokens for any name one brings a certificate.

        Whichever of two requests is decided first, the other is either stored already or finds that one. Their order is
        that of their versions, which an undecided request has from its creation.
        """
        stored = [each async for each in self._stored_for(principal)]
        own = next((version for version, each in stored if each.uid == request.uid), 0)
        for version, other in stored:
            if other.uid == request.uid or other.is_denied or other.is_failed:
                continue
            if other.certificate:
                if _lives(other, principal, revoked, now):
                    facts = facts._replace(lives_until=max(facts.lives_until or now, other.not_after or now))
            elif other.is_approved:
                facts = facts._replace(approved=other.name)
            elif version < own and _is_rival(other, request, now):
                facts = facts._replace(earlier=other.name)
        return facts

    async def _stored_for(self, principal: Principal) -> AsyncGenerator[tuple[int, SigningRequest]]:
        """Requests for a principal with their versions, as the store has them now."""
        token: str | None = None
        while True:
            page = await self._store.list_page(SINGULAR, continue_token=token)
            for stored in page.objects:
                request = read_signing_request(stored)
                with contextlib.suppress(BadRequest):
                    if requested_principal(request.pem) == principal:
                        yield stored.version, request
            token = page.continue_token
            if not token:
                return

    async def _stated_end(self, principal: Principal, now: datetime) -> datetime | None:
        """The end of an agent's certificate by its object's status: one may have been issued without a request."""
        kind = _STATED_BY.get(principal.role)
        if kind is None:
            return None
        stored = await self._store.get(ObjectKey(kind, "", principal.name))
        status = section(stored.document(), "status") if stored is not None else {}
        ends = parse_timestamp(status.get("clientCertificateExpirationTimestamp"))
        return ends if ends is not None and ends > now else None


def _is_rival(other: SigningRequest, request: SigningRequest, now: datetime) -> bool:
    """True for an undecided request by another token; one token brings one certificate, however often it is used."""
    is_by_token = other.username.startswith(_BOOTSTRAPPER) and other.username != request.username
    return is_by_token and now < other.created_at + WAITING_LIFE


def _lives(request: SigningRequest, principal: Principal, revoked: Revocations, now: datetime) -> bool:
    ends = request.not_after
    return ends is not None and ends > now and not revoked.rejects(principal.user, request.serial, request.created_at)
