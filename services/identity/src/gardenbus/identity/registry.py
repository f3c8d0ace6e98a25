"""Facts that requests are decided on: their token, what was issued before, and what was revoked."""

from datetime import datetime
from typing import NamedTuple

from gardenbus.common.api.document import StoredObject, section
from gardenbus.common.api.identity.bootstrap_tokens import BootstrapToken, key_of_token, read_token, spent
from gardenbus.common.api.identity.principals import Principal, principal_of
from gardenbus.common.api.identity.signing_requests import SigningRequest
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import BadRequest
from gardenbus.common.ports.clock import parse_timestamp
from gardenbus.common.ports.store import Store
from gardenbus.credentials.certificates import requested_principal
from gardenbus.identity.domain.approval import ApprovalFacts, spender
from gardenbus.identity.domain.requests_cache import RequestsCache
from gardenbus.identity.domain.revocations import Revocations


class StoredToken(NamedTuple):
    """A bootstrap token, and the Secret that it was read from."""

    secret: StoredObject
    token: BootstrapToken


class IssuedCertificates:
    """Facts from the cache of requests, and from the store where another replica may have been faster."""

    def __init__(self, store: Store, requests: RequestsCache) -> None:
        self._store = store
        self._requests = requests

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
        lives_until = self._requests.lives_until(principal, revoked, now)
        if lives_until is None and not revoked.rejects(principal.user, issued_at=last_issued_at):
            lives_until = await self._stated_end(principal, now)
        return ApprovalFacts(
            token=token.token if token else None,
            same_key=self._requests.with_same_key(request),
            lives_until=lives_until,
            is_revoked=revoked.rejects(request.username, issued_at=last_issued_at),
        )

    async def _stated_end(self, principal: Principal, now: datetime) -> datetime | None:
        """The end of a seed's certificate by its status: one may have been issued without a request."""
        if principal.role != "gardenlet":
            return None
        seed = await self._store.get(ObjectKey("seed", "", principal.name))
        status = section(seed.document(), "status") if seed is not None else {}
        ends = parse_timestamp(status.get("clientCertificateExpirationTimestamp"))
        return ends if ends is not None and ends > now else None
