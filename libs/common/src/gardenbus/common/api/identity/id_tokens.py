"""Claims of a provider's ID tokens: who is named, with which groups, and for whom the token is. Pure.

The signature is checked where the provider's keys are read.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from gardenbus.common.api.identity.names import claimed_person, is_reserved
from gardenbus.common.errors import BadRequest, Forbidden

ALGORITHMS: Sequence[str] = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
"""Signatures of a key pair. None that the client's own secret could make."""

CLOCK_LEEWAY_SECONDS = 60
MOST_GROUPS, LONGEST_GROUP = 200, 253


def user_named(claims: Mapping[str, Any], claim: str) -> str:
    """The user that an ID token names. Raises Forbidden unless a person may have the name.

    An address that the provider has not verified is whatever somebody typed.
    """
    if claim == "email" and claims.get("email_verified") is not True:
        raise Forbidden(f"the provider has not verified the address {str(claims.get(claim))[:80]!r}")
    try:
        return claimed_person(claims.get(claim)).user
    except BadRequest as error:
        raise Forbidden(f"the claim {claim} names no user: {error.message}") from error


def groups_named(claims: Mapping[str, Any], claim: str) -> tuple[str, ...]:
    """The groups that an ID token names, in order, without those that no person brings: they are somebody else's."""
    stated = claims.get(claim) if claim else None
    given: list[Any] = cast("list[Any]", stated) if isinstance(stated, list) else [stated]
    return tuple(sorted({each for each in given[:MOST_GROUPS] if isinstance(each, str) and _may_be_brought(each)}))


def _may_be_brought(group: str) -> bool:
    return group.isascii() and group.isprintable() and 0 < len(group) <= LONGEST_GROUP and not is_reserved(group)


def is_for(client: str, claims: Mapping[str, Any]) -> bool:
    """True for claims whose audience is one client alone, or that say which of several it was made for (`azp`)."""
    audience = claims["aud"]
    is_shared = isinstance(audience, list) and len(cast("list[Any]", audience)) > 1
    return claims.get("azp", None if is_shared else client) == client
