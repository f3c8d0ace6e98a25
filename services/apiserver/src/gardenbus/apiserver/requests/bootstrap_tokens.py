"""Requests for bootstrap tokens: `token.create`.

An operator requests any; a gardenlet only for the seed of a ManagedSeed whose shoot it hosts, and that has no gardenlet
yet, or one whose certificate ended or was revoked. Source: Gardener's SeedRestriction admission.

| `spec.gardenlet.bootstrap` | what its gardenlet comes in by |
|---|---|
| `BootstrapToken` | a token of its own for each request |
| `ServiceAccount` | the token of the temporary account `gardenlet-bootstrap-<name>`: the next one replaces it |
| `None` | credentials that it brings along: there is no token |
"""

import hashlib
import secrets
import string
from datetime import timedelta
from typing import Any

import msgspec

from gardenbus.apiserver.call import Call
from gardenbus.apiserver.domain import report_admission
from gardenbus.apiserver.domain.operators import check_operator
from gardenbus.apiserver.registry.preconditions import Precondition
from gardenbus.apiserver.registry.read_cache import ReadCache
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.identity.bootstrap_tokens import Token, key_of_token, new_token_secret, read_token
from gardenbus.common.api.identity.names import issued
from gardenbus.common.api.identity.principals import Principal, principal_of
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.api.request_bodies import TokenRequest
from gardenbus.common.controller.agent_credentials import AgentCredentials
from gardenbus.common.errors import BadRequest, Forbidden
from gardenbus.common.ports.clock import Clock, timestamp

MANAGED_SECONDS = 3600
"""Life of a token that a gardenlet requests. Source: Gardener's `gardenletdeployer`."""

_LETTERS = string.ascii_lowercase + string.digits


class BootstrapTokens:
    """Handles them. Raises Terminal, Conflict, Unavailable."""

    def __init__(self, clock: Clock, writer: Writer) -> None:
        self._clock = clock
        self._writer = writer

    async def on_token_create(self, call: Call) -> Any:
        """`{"token", "id", "expires", "boundTo"}`: the token is shown this once."""
        created = await self._created(call.read(TokenRequest), call.user, call.reads, is_operator=call.is_operator)
        call.done()
        return created

    async def _created(self, wanted: TokenRequest, user: str, reads: ReadCache, *, is_operator: bool) -> Any:
        requester = principal_of(user)
        if not is_operator and requester.role == "gardenlet":
            managed_seed = await _managed_seed(wanted, requester.name, reads, self._writer.agent_credentials)
            wanted = msgspec.structs.replace(wanted, ttl_seconds=MANAGED_SECONDS)
            if section(managed_seed, "spec", "gardenlet").get("bootstrap") == "ServiceAccount":
                return await self._replace(wanted, user, reads)
        else:
            check_operator(user, is_operator=is_operator)
        return await self._create(Token(_random(6), _random(16)), 0, wanted, user, reads)

    async def _replace(self, wanted: TokenRequest, user: str, reads: ReadCache) -> Any:
        """The only token of the account of a ManagedSeed; the one of before lets nobody in any more.

        Source: Gardener's `ComputeGardenletKubeconfigWithServiceAccountToken`. Raises Conflict.
        """
        account = f"gardenlet-bootstrap-{wanted.seed}"
        token = Token(_derived(account), _random(16))
        before = await reads.get(key_of_token(token.id))
        bound_to = _bound_to(wanted)
        if before is not None and _owner_of(before.document()) != bound_to:
            token, before = Token(_random(6), token.secret), None
        wanted = msgspec.structs.replace(wanted, description=account)
        return await self._create(token, before.version if before else 0, wanted, user, reads)

    async def _create(self, token: Token, version: int, wanted: TokenRequest, user: str, reads: ReadCache) -> Any:
        expires = self._clock.now() + timedelta(seconds=wanted.ttl_seconds)
        bound_to = _bound_to(wanted)
        secret = new_token_secret(
            token, expires=expires, bound_to=bound_to, description=wanted.description or f"created by {user}"
        )
        if version:  # it replaces one that may have been spent
            secret = {**secret, "data": {**secret["data"], "spent-by": ""}}
        await self._writer.apply(secret, reads, user=user, condition=Precondition(key_of_token(token.id), version))
        return {
            "token": str(token),
            "id": token.id,
            "expires": timestamp(expires),
            "boundTo": bound_to.user if bound_to else "",
        }


def _bound_to(wanted: TokenRequest) -> Principal | None:
    if wanted.seed and wanted.member:
        raise BadRequest("seed: a token is for a seed or for a member cluster, not for both")
    if wanted.seed:
        return issued(f"seed:{wanted.seed}")
    return issued(f"member:{wanted.member}") if wanted.member else None


async def _managed_seed(wanted: TokenRequest, parent: str, reads: ReadCache, credentials: AgentCredentials) -> Document:
    """The ManagedSeed of a token. Raises Forbidden unless the parent hosts it and no gardenlet of it can come in.

    One that is being deleted has a token for as long as its Seed is there, which only its gardenlet releases.
    """
    denied = f"the gardenlet of seed {parent} gets no token for {wanted.seed or wanted.member or 'just anybody'}"
    managed_seed = await reads.get(ObjectKey("managedseed", GARDEN_NAMESPACE, wanted.seed)) if wanted.seed else None
    seed = await reads.get(ObjectKey("seed", "", wanted.seed)) if managed_seed is not None else None
    if managed_seed is None or (managed_seed.is_deleting and seed is None):
        raise Forbidden(f"{denied}: there is no such ManagedSeed")
    name = str(section(managed_seed.document(), "spec", "shoot").get("name") or "")
    shoot = await reads.get(ObjectKey("shoot", GARDEN_NAMESPACE, name))
    if shoot is None or not report_admission.is_responsible(shoot.document(), parent):
        raise Forbidden(f"{denied}: the shoot of {managed_seed.key} is not here")
    status = section(seed.document(), "status") if seed is not None else {}
    if await credentials.is_certificate_alive(Principal("gardenlet", wanted.seed), status):
        ends = status.get("clientCertificateExpirationTimestamp")
        raise Forbidden(f"{denied}: the certificate of its gardenlet lives until {ends}")
    document = managed_seed.document()
    if section(document, "spec", "gardenlet").get("bootstrap") == "None":
        raise Forbidden(f"{denied}: spec.gardenlet.bootstrap is None, its gardenlet brings its own credentials")
    return document


def _owner_of(secret: Document) -> Principal | None:
    try:
        return read_token(secret).bound_to
    except BadRequest:
        return None


def _derived(account: str) -> str:
    """The id of an account's token: always the same one."""
    digest = hashlib.sha256(account.encode()).digest()
    return "".join(_LETTERS[each % len(_LETTERS)] for each in digest[:6])


def _random(length: int) -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(length))
