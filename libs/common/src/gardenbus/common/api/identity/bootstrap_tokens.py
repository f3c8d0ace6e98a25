"""Bootstrap tokens: Secrets in Kubernetes' form by which a new gardenlet or member agent requests its certificate.

| data | |
|---|---|
| `token-id`, `token-secret` | the two halves of the token `<id>.<secret>` |
| `expiration` | RFC 3339; the token ends then, and the Secret is removed |
| `usage-bootstrap-authentication` | `true`: it lets a connection in |
| `description` | for people |
| `bound-to` | the only principal that it is for, as `seed:aws-cork`; without it any that has no living certificate |
| `spent-by` | the request (name and uid) that it was spent on |

Source: Kubernetes' `pkg/bootstrap`, https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/
"""

import base64
import binascii
import re
from datetime import UTC, datetime
from typing import Any, NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.identity.names import issued
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import BadRequest

NAMESPACE = "kube-system"
NAME_PREFIX = "bootstrap-token-"
SECRET_TYPE = "bootstrap.kubernetes.io/token"  # noqa: S105 - a type's name
BOUND_ROLES = ("gardenlet", "member-agent")

_TOKEN = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})")
_ID = re.compile(r"[a-z0-9]{6}")
_SECRET = re.compile(r"[a-z0-9]{16}")


class Token(NamedTuple):
    """A token in two halves."""

    id: str
    secret: str

    def __str__(self) -> str:
        """`<id>.<secret>`."""
        return f"{self.id}.{self.secret}"

    @property
    def user(self) -> str:
        """The user that comes in with it."""
        return Principal("bootstrap", self.id).user


class BootstrapToken(NamedTuple):
    """A token as it stands in its Secret."""

    token: Token
    expires: datetime
    authenticates: bool
    bound_to: Principal | None = None
    spent_by: str = ""
    description: str = ""

    @property
    def principal(self) -> Principal:
        """The principal that comes in with it."""
        return Principal("bootstrap", self.token.id)


def is_token(text: str) -> bool:
    """True for the form of a token."""
    return _TOKEN.fullmatch(text) is not None


def parse_token(text: str) -> Token:
    """A token from its text. Raises BadRequest, without showing it."""
    found = _TOKEN.fullmatch(text.strip())
    if found is None:
        raise BadRequest("this is no bootstrap token: one has six of a-z and 0-9, a dot, and sixteen of them")
    return Token(found[1], found[2])


def key_of_token(token_id: str) -> ObjectKey:
    """The key of a token's Secret. Raises BadRequest for an impossible id."""
    if not _ID.fullmatch(token_id):
        raise BadRequest(f"{token_id[:40]!r} is no id of a bootstrap token: it has six of a-z and 0-9")
    return ObjectKey("secret", NAMESPACE, f"{NAME_PREFIX}{token_id}")


def is_token_secret(key: ObjectKey) -> bool:
    """True for the key of a bootstrap token's Secret."""
    return key.kind == "secret" and key.namespace == NAMESPACE and key.name.startswith(NAME_PREFIX)


def new_token_secret(token: Token, *, expires: datetime, bound_to: Principal | None, description: str) -> Document:
    """The manifest of a token's Secret."""
    values = {
        "token-id": token.id,
        "token-secret": token.secret,
        "expiration": expires.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "usage-bootstrap-authentication": "true",
        "description": description,
    }
    if bound_to is not None:
        values["bound-to"] = bound_to.user
    key = key_of_token(token.id)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": SECRET_TYPE,
        "metadata": {"name": key.name, "namespace": key.namespace},
        "data": {name: _encoded(value) for name, value in values.items()},
    }


def read_token(secret: Document) -> BootstrapToken:
    """The token in a Secret. Raises BadRequest, naming the field."""
    data = section(secret, "data")
    token = Token(_text(data, "token-id"), _text(data, "token-secret"))
    if not _ID.fullmatch(token.id) or not _SECRET.fullmatch(token.secret):
        raise BadRequest("data.token-id: six of a-z and 0-9 are needed, and sixteen in data.token-secret")
    if section(secret, "metadata").get("name") != f"{NAME_PREFIX}{token.id}":
        raise BadRequest(f"metadata.name: must be {NAME_PREFIX}{token.id}, as in data.token-id")
    bound_to = issued(user) if (user := _text(data, "bound-to")) else None
    if bound_to is not None and bound_to.role not in BOUND_ROLES:
        raise BadRequest(f"data.bound-to: {bound_to.user!r} is neither seed:<name> nor member:<name>")
    return BootstrapToken(
        token,
        _expiration(_text(data, "expiration")),
        _text(data, "usage-bootstrap-authentication") == "true",
        bound_to,
        _text(data, "spent-by"),
        _text(data, "description"),
    )


def spent(secret: Document, by: str) -> Document:
    """The Secret of a token that was spent on a request."""
    return {**secret, "data": {**section(secret, "data"), "spent-by": _encoded(by)}}


def _expiration(text: str) -> datetime:
    if not text:
        raise BadRequest("data.expiration: is needed: a token that never ends is a password")
    try:
        expires = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadRequest(f"data.expiration: {text[:40]!r} is no time: write 2026-01-02T03:04:05Z") from error
    return expires if expires.tzinfo else expires.replace(tzinfo=UTC)


def _encoded(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


def _text(data: Document, field: str) -> str:
    value: Any = data.get(field, "")
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, ValueError, TypeError) as error:
        raise BadRequest(f"data.{field}: is not base64") from error
