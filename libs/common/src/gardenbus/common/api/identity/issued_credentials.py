"""Credentials that were issued to clients which have no certificate: a password, or an nkey.

Each is a Secret in the namespace `garden` with the label below, which holds what a credential is checked with, and not
the credential. Removing it revokes it.
"""

import base64
import binascii
import hashlib
import hmac
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document
from gardenbus.common.api.identity.bootstrap_tokens import BootstrapToken
from gardenbus.common.api.identity.names import issued
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import GARDEN_NAMESPACE
from gardenbus.common.errors import BadRequest

SEEDS_ANNOTATION = "gardenbus.io/seeds"
"""Of a Secret: the seeds, separated by commas, whose gardenlets read it. Any of them could name it in its own Seed."""

PURPOSE_LABEL = "gardenbus.io/purpose"
CREDENTIALS = "credentials"
"""Value of the label."""


def login_in(content: bytes) -> bytes | None:
    """The JSON of user and password in a file of credentials: all of it, or the token of a kubeconfig.

    None for a file of another kind. Raises BadRequest for a kubeconfig that leads to no token.
    """
    if b"current-context" not in content:
        return content if content.lstrip().startswith(b"{") else None
    from gardenbus.common.api.identity.kubeconfigs import read_kubeconfig  # noqa: PLC0415  most clients have none

    token = read_kubeconfig(content.decode(errors="replace")).token
    if not token.startswith("{"):
        raise BadRequest("the kubeconfig's user has no token that a token requestor wrote")
    return token.encode()


def credentials_secret(
    name: str, principal: Principal, expires: datetime, *, password: str = "", nkey: str = ""
) -> Document:
    """The Secret for a credential: a password, which is random and long, or the public nkey."""
    data = {
        "user": principal.user,
        "expires": expires.isoformat(),
        **({"sha256": hashlib.sha256(password.encode()).hexdigest()} if password else {}),
        **({"nkey": nkey} if nkey else {}),
    }
    metadata = {"name": name, "namespace": GARDEN_NAMESPACE, "labels": {PURPOSE_LABEL: CREDENTIALS}}
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": encoded}


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
    try:
        principal = issued(_text(data.user, "user"))
    except BadRequest as error:
        raise BadRequest(f"data.user: {error.message}") from error
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
