"""Credentials that were issued, read from their Secrets (`common.api.identity.issued_credentials`), and checked."""

import base64
import binascii
import hashlib
import hmac
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.identity.bootstrap_tokens import BootstrapToken
from gardenbus.common.api.identity.principals import Principal, principal_of
from gardenbus.common.errors import BadRequest


class _Data(msgspec.Struct, frozen=True):
    user: str
    expires: str
    sha256: str = ""
    nkey: str = ""


class _Secret(msgspec.Struct, frozen=True):
    data: _Data


_decode = json_decoder(_Secret)


class IssuedCredentials(NamedTuple):
    """One credential: whose it is, until when, and what it is checked with (the other is empty)."""

    principal: Principal
    expires: datetime
    sha256: str = ""
    """Of the password, which is random and long: it needs no slow hash."""
    nkey: str = ""
    issued_at: datetime | None = None


def read_credentials(secret: bytes, issued_at: datetime | None = None) -> IssuedCredentials:
    """The credentials in a Secret's JSON, which was created at that time. Raises BadRequest, naming the field."""
    try:
        data = _decode(secret).data
        expires = datetime.fromisoformat(_text(data.expires, "expires"))
    except (msgspec.MsgspecError, ValueError) as error:
        raise BadRequest(f"data: {error}") from error
    principal = principal_of(_text(data.user, "user"))
    if principal.account != "OUT":
        raise BadRequest(f"data.user: {principal.user!r} has its credentials from the server's configuration")
    expires = expires if expires.tzinfo else expires.replace(tzinfo=UTC)
    return IssuedCredentials(principal, expires, _text(data.sha256, "sha256"), _text(data.nkey, "nkey"), issued_at)


def credentials_of_token(token: BootstrapToken) -> IssuedCredentials:
    """A bootstrap token as credentials: the id is the user's, the secret is the password."""
    digest = hashlib.sha256(token.token.secret.encode()).hexdigest()
    return IssuedCredentials(token.principal, token.expires, digest)


def has_password(credentials: IssuedCredentials, password: str) -> bool:
    """Compare a password: true if it is the one that was issued."""
    digest = hashlib.sha256(password.encode("utf-8", "surrogatepass")).hexdigest()
    return bool(credentials.sha256) and hmac.compare_digest(digest.encode(), credentials.sha256.encode())


def _text(encoded: str, field: str) -> str:
    try:
        return base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise BadRequest(f"data.{field} is not base64") from error
