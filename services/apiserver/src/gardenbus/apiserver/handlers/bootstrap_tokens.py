"""Requests for bootstrap tokens: `token.create`.

An operator asks for any; a gardenlet only for the seed of a ManagedSeed whose shoot it hosts, and that has no gardenlet
yet, or one whose certificate ended. Source: Gardener's SeedRestriction admission.
"""

import secrets
import string
from datetime import datetime, timedelta
from typing import Annotated, Any

import msgspec

from gardenbus.apiserver.domain import report_admission
from gardenbus.apiserver.domain.operators import check_operator
from gardenbus.apiserver.registry.preconditions import Precondition
from gardenbus.apiserver.registry.read_cache import ReadCache
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.common.api.decoding import decode_json
from gardenbus.common.api.document import section
from gardenbus.common.api.identity.bootstrap_tokens import Token, key_of_token, new_token_secret
from gardenbus.common.api.identity.principals import Principal, principal_of
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.errors import BadRequest, Forbidden, Unsupported
from gardenbus.common.ports.clock import Clock, parse_timestamp, timestamp

LONGEST_SECONDS = 7 * 86_400
MANAGED_SECONDS = 3600
"""Life of a token that a gardenlet asks for. Source: Gardener's `gardenletdeployer`."""

_LETTERS = string.ascii_lowercase + string.digits


class TokenBody(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Body of `token.create`: the seed or member cluster that it is bound to, if any, and its life."""

    seed: str = ""
    member: str = ""
    ttl_seconds: Annotated[int, msgspec.Meta(ge=60, le=LONGEST_SECONDS)] = 3600
    description: str = ""


class BootstrapTokens:
    """Handles them. Raises Terminal, Conflict, Unavailable."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def respond(
        self, verb: str, body: bytes, *, user: str, is_operator: bool, writer: Writer, reads: ReadCache
    ) -> Any:
        """`{"token", "id", "expires", "boundTo"}`: the token is shown this once."""
        if verb != "create":
            raise Unsupported(f"token.{verb[:40]} is no request: there is token.create")
        wanted = _body(body)
        requester = principal_of(user)
        if not is_operator and requester.role == "gardenlet":
            await _check_managed(wanted, requester.name, reads, self._clock.now())
            wanted = msgspec.structs.replace(wanted, ttl_seconds=MANAGED_SECONDS)
        else:
            check_operator(user, is_operator=is_operator)
        return await self._create(wanted, user, writer, reads)

    async def _create(self, wanted: TokenBody, user: str, writer: Writer, reads: ReadCache) -> Any:
        token = Token(_random(6), _random(16))
        expires = self._clock.now() + timedelta(seconds=wanted.ttl_seconds)
        bound_to = _bound_to(wanted)
        secret = new_token_secret(
            token, expires=expires, bound_to=bound_to, description=wanted.description or f"created by {user}"
        )
        await writer.apply(secret, reads, user=user, condition=Precondition(key_of_token(token.id), 0))
        return {
            "token": str(token),
            "id": token.id,
            "expires": timestamp(expires),
            "boundTo": bound_to.user if bound_to else "",
        }


def _bound_to(wanted: TokenBody) -> Principal | None:
    if wanted.seed and wanted.member:
        raise BadRequest("seed: a token is for a seed or for a member cluster, not for both")
    if wanted.seed:
        return principal_of(f"seed:{wanted.seed}")
    return principal_of(f"member:{wanted.member}") if wanted.member else None


async def _check_managed(wanted: TokenBody, parent: str, reads: ReadCache, now: datetime) -> None:
    """Raise Forbidden unless the token is for a ManagedSeed that the parent hosts and that has no gardenlet yet."""
    denied = f"the gardenlet of seed {parent} gets no token for {wanted.seed or wanted.member or 'just anybody'}"
    managed_seed = await reads.get(ObjectKey("managedseed", GARDEN_NAMESPACE, wanted.seed)) if wanted.seed else None
    if managed_seed is None or managed_seed.is_deleting:
        raise Forbidden(f"{denied}: there is no such ManagedSeed")
    name = str(section(managed_seed.document(), "spec", "shoot").get("name") or "")
    shoot = await reads.get(ObjectKey("shoot", GARDEN_NAMESPACE, name))
    if shoot is None or not report_admission.is_responsible(shoot.document(), parent):
        raise Forbidden(f"{denied}: the shoot of {managed_seed.key} is not here")
    seed = await reads.get(ObjectKey("seed", "", wanted.seed))
    ends = seed and parse_timestamp(section(seed.document(), "status").get("clientCertificateExpirationTimestamp"))
    if ends and ends > now:
        raise Forbidden(f"{denied}: the certificate of its gardenlet lives until {timestamp(ends)}")


def _random(length: int) -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(length))


def _body(body: bytes) -> TokenBody:
    try:
        return decode_json(body or b"{}", TokenBody)
    except msgspec.DecodeError as error:
        raise BadRequest(f"send an object with seed, member, ttlSeconds, description: {error}") from error
