"""NATS' JWTs, version 2: requests of the server to the auth callout, and its responses (NATS' ADR-26).

A token is signed by the nkey of its issuer. Its claims name the account a user comes in by (`aud` of a user claim), the
permissions, and the end of the connection (`exp`).
"""

import base64
import binascii
import hashlib
from typing import Any, NamedTuple

import msgspec

from gardenbus.common.api.identity.nkeys import KeyPair, verify
from gardenbus.common.api.identity.permissions import Permissions
from gardenbus.common.errors import BadRequest

_HEADER = {"typ": "JWT", "alg": "ed25519-nkey"}
_PARTS = 3
_UNLIMITED = -1

_encode_json = msgspec.json.Encoder().encode


class ClientInfo(msgspec.Struct, frozen=True):
    """The connection that is to be authenticated."""

    host: str = ""
    id: int = 0
    name: str = ""
    nonce: str = ""


class ConnectOptions(msgspec.Struct, frozen=True, rename={"password": "pass"}):
    """Options of the client's CONNECT: everything in it is a claim, not a fact."""

    auth_token: str = ""
    user: str = ""
    password: str = ""
    nkey: str = ""
    sig: str = ""
    name: str = ""


class ServerId(msgspec.Struct, frozen=True):
    """The server that sends the request."""

    id: str
    name: str = ""


class AuthorizationRequest(msgspec.Struct, frozen=True):
    """Request to authenticate a connection. `user_nkey` is the name that the server gave it."""

    server_id: ServerId
    user_nkey: str
    client_info: ClientInfo = ClientInfo()
    connect_opts: ConnectOptions = ConnectOptions()


class _RequestClaims(msgspec.Struct, frozen=True):
    iss: str
    nats: AuthorizationRequest


class Grant(NamedTuple):
    """Rights of a principal: name, account and permissions until `expires` (Unix seconds), 0 for ever.

    Limits are the account's (`server_configuration`).
    """

    name: str
    account: str
    permissions: Permissions
    expires: int


def read_request(token: str) -> AuthorizationRequest:
    """The request in a server's token. Raises BadRequest unless the server whose it says that it is has signed it."""
    parts = token.split(".")
    if len(parts) != _PARTS:
        raise BadRequest("this is no token: it has not three parts")
    try:
        claims = msgspec.json.decode(_decode(parts[1]), type=_RequestClaims)
        signature = _decode(parts[2])
    except (msgspec.MsgspecError, binascii.Error, ValueError) as error:
        raise BadRequest(f"the token cannot be read: {error}") from error
    if not verify(claims.iss, f"{parts[0]}.{parts[1]}".encode(), signature):
        raise BadRequest("the token was not signed by its issuer")
    if claims.iss != claims.nats.server_id.id:
        raise BadRequest("the token was not issued by the requesting server")
    return claims.nats


def user_token(grant: Grant, user_nkey: str, issuer: KeyPair, issued_at: int) -> str:
    """The token of a user that is admitted."""
    nats: dict[str, Any] = {
        "type": "user",
        "version": 2,
        "pub": {"allow": grant.permissions.publish} if grant.permissions.publish else {"deny": [">"]},
        "sub": {"allow": grant.permissions.subscribe} if grant.permissions.subscribe else {"deny": [">"]},
        "subs": _UNLIMITED,
        "data": _UNLIMITED,
        "payload": _UNLIMITED,
    }
    expires = {"exp": grant.expires} if grant.expires else {}
    claims = {"sub": user_nkey, "aud": grant.account, "name": grant.name, **expires, "nats": nats}
    return _signed(claims, issuer, issued_at)


def granted(request: AuthorizationRequest, user: str, issuer: KeyPair, issued_at: int) -> str:
    """The response that admits a connection with a user's token."""
    return _response(request, {"jwt": user}, issuer, issued_at)


def denied(request: AuthorizationRequest, reason: str, issuer: KeyPair, issued_at: int) -> str:
    """The response that rejects a connection. The server logs the reason, which the client does not learn."""
    return _response(request, {"error": reason}, issuer, issued_at)


def _response(request: AuthorizationRequest, outcome: dict[str, str], issuer: KeyPair, issued_at: int) -> str:
    nats = {"type": "authorization_response", "version": 2, **outcome}
    return _signed({"sub": request.user_nkey, "aud": request.server_id.id, "nats": nats}, issuer, issued_at)


def _signed(claims: dict[str, Any], issuer: KeyPair, issued_at: int) -> str:
    claims = {**claims, "iss": issuer.public, "iat": issued_at}
    digest = hashlib.sha256(_encode_json(claims)).digest()
    claims["jti"] = base64.b32encode(digest).decode().rstrip("=")
    text = f"{_encode(_encode_json(_HEADER))}.{_encode(_encode_json(claims))}"
    return f"{text}.{_encode(issuer.sign(text.encode()))}"


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
