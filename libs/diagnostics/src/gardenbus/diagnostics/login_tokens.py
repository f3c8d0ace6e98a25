"""Tokens of the dashboard's logins: what a key says of a user, until when. Pure.

`<claims>.<signature>`, both base64url: JSON, and HMAC-SHA256. A token has one purpose, which is signed with it: a
session is no link. Whoever has the key can sign: the dashboard's replicas, and the operator's command line.
"""

import base64
import binascii
import hashlib
import hmac
from datetime import datetime, timedelta
from typing import Literal, TypeVar

import msgspec

from gardenbus.common.api.identity.names import person, requester
from gardenbus.common.api.identity.principals import OPERATOR
from gardenbus.common.errors import BadRequest, Forbidden

LINK_LIFE = timedelta(seconds=60)
SESSION_LIFE = timedelta(hours=8)
LEAST_KEY_LENGTH = 32
"""Characters of a key."""

MAX_LENGTH = 4096
"""Characters of a token that are read."""

Purpose = Literal["link", "session", "flow"]


class Claims(msgspec.Struct, frozen=True):
    """A user, under an id that no other token has, until `expires` (Unix seconds)."""

    user: str
    id: str
    expires: int


ClaimsType = TypeVar("ClaimsType", bound=Claims)


def check_key(key: str) -> bytes:
    """The key in the text of a key file. Raises BadRequest when it is too short to be one."""
    text = key.strip()
    if len(text) < LEAST_KEY_LENGTH:
        raise BadRequest(f"it needs at least {LEAST_KEY_LENGTH} characters, as `openssl rand -hex 32` prints them")
    return text.encode()


def signed(key: bytes, purpose: Purpose, claims: Claims) -> str:
    """The token of some claims. Raises BadRequest for a name that is not let in."""
    _check_user(purpose, claims.user)
    text = _encoded(msgspec.json.encode(claims))
    return f"{text}.{_signature(key, purpose, text)}"


def verified(key: bytes, purpose: Purpose, token: str, now: datetime, claims: type[ClaimsType]) -> ClaimsType:
    """The claims of a token. Raises Forbidden unless the key signed it for this purpose, and it has not expired."""
    text, _, signature = token.partition(".")
    if len(token) > MAX_LENGTH or not hmac.compare_digest(signature.encode(), _signature(key, purpose, text).encode()):
        raise Forbidden("it has no known signature")
    try:
        found = msgspec.json.decode(_decoded(text), type=claims)
        _check_user(purpose, found.user)
    except (msgspec.MsgspecError, binascii.Error, ValueError, BadRequest) as error:
        raise Forbidden(f"what is signed cannot be read: {error}") from error
    if now.timestamp() >= found.expires:
        raise Forbidden("it has expired")
    return found


def page_token(key: bytes, session: Claims) -> str:
    """The secret that a session's pages send with each change: a foreign page does not know it."""
    return _signature(key, "page", session.id)


def cookie_name(key: bytes) -> str:
    """Name of the session's cookie; dashboards on several ports of one host have different keys."""
    return f"gardenbus-{hashlib.sha256(b'cookie' + key).hexdigest()[:12]}"


def _check_user(purpose: Purpose, user: str) -> None:
    """Raise BadRequest for somebody who is not let in: a flow's user is the dashboard, all others are people."""
    if purpose == "flow":
        requester(user)
    elif user != OPERATOR:
        person(user)


def _signature(key: bytes, purpose: str, text: str) -> str:
    own = hmac.digest(key, purpose.encode(), "sha256")
    return _encoded(hmac.digest(own, text.encode(), "sha256"))


def _encoded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
