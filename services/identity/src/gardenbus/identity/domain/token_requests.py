"""Secrets that request short-lived credentials, and when they get them: Gardener's token requestor. Pure.

Such a Secret is in the namespace `garden`, where only operators write: that is how an operator names the identity. It
must be a person's, a program's, a scheduler's, an extension's or a plug-in's, and none that is an operator.

| field | |
|---|---|
| label `resources.gardener.cloud/purpose` | `token-requestor` |
| annotation `gardenbus.io/user` | whose credentials: `ann`, `scheduler:mine`, `extension:aws`, `plugin:carbon` |
| annotations `serviceaccount.resources.gardener.cloud/{name,namespace}` | instead of it: the ServiceAccount's |
| annotation `serviceaccount.resources.gardener.cloud/inject-ca-bundle` | "true": `bundle.crt` is wanted too |
| annotation `serviceaccount.resources.gardener.cloud/token-expiration-duration` | their life, 12 h without it |
| annotation `serviceaccount.resources.gardener.cloud/token-renew-timestamp` | written: when the next are issued |
| annotation `gardenbus.io/issued-at` | written: when these were issued |
| `data.token` | written: `{"user", "password", "expires"}`, as `gardenbus identity issue` writes them to a file |
| `data.bundle.crt` | written when it is wanted: the authorities that NATS' certificate is of, PEM |
| `data.kubeconfig` | where there is one: its current user gets the token instead, its cluster the authorities |

Source: https://gardener.cloud/docs/gardener/concepts/resource-manager/#tokenrequestor-controller
"""

import base64
import hashlib
import json
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from gardenbus.common.api.decoding import decode_json
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.durations import parse_duration
from gardenbus.common.api.identity.issued_credentials import credentials_secret
from gardenbus.common.api.identity.kubeconfigs import filled, read_kubeconfig
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.identity.requested_tokens import (
    SERVICE_ACCOUNT_ANNOTATION,
    USER_ANNOTATION,
    requested_principal,
)
from gardenbus.common.api.identity.revocations import Revocations
from gardenbus.common.api.identity.roles import landscape_role
from gardenbus.common.errors import BadRequest
from gardenbus.common.ports.clock import parse_timestamp, timestamp

DURATION_ANNOTATION = f"{SERVICE_ACCOUNT_ANNOTATION}token-expiration-duration"
RENEW_ANNOTATION = f"{SERVICE_ACCOUNT_ANNOTATION}token-renew-timestamp"
BUNDLE_ANNOTATION = f"{SERVICE_ACCOUNT_ANNOTATION}inject-ca-bundle"
ISSUED_ANNOTATION = "gardenbus.io/issued-at"
REQUESTED_BY_ANNOTATION = "gardenbus.io/requested-by"
"""On the Secret that credentials are checked with: name and uid of the Secret that they were requested by."""

DEFAULT_LIFE = timedelta(hours=12)
SHORTEST_LIFE = timedelta(minutes=10)
LONGEST_LIFE = timedelta(days=30)
RENEWED_AT = 0.8
"""Of the life."""

LONGEST_UNRENEWED = timedelta(hours=24)
BUNDLE_PERIOD = timedelta(minutes=1)
"""Between two looks at the authorities: replicas whose files differ for a moment do not write against each other."""

_KUBECONFIG, _TOKEN, _BUNDLE = "kubeconfig", "token", "bundle.crt"


class RequestedToken(NamedTuple):
    """A Secret's request, and the credentials that it has (None: nothing that is of use)."""

    principal: Principal
    life: timedelta
    issued_to: str = ""
    """The user of the credentials that it has."""
    password: str = ""
    issued_at: datetime | None = None
    expires: datetime | None = None
    renew_at: datetime | None = None
    authorities: str | None = None
    """Those that it has, PEM; None when it requests none."""


class Issue(NamedTuple):
    """New credentials are due."""


class Keep(NamedTuple):
    """The credentials are good until then."""

    until: datetime


class RejectIdentity(NamedTuple):
    """The identity may not be requested."""

    message: str


def read_token_request(secret: Document) -> RequestedToken:
    """The request in a Secret. Raises BadRequest, naming the annotation."""
    annotations = section(section(secret, "metadata"), "annotations")
    text, authorities = _content(secret)
    token = _token(text)
    return RequestedToken(
        requested_principal(secret),
        _life(annotations.get(DURATION_ANNOTATION)),
        str(token.get("user", "")),
        str(token.get("password", "")),
        parse_timestamp(annotations.get(ISSUED_ANNOTATION)) if token else None,
        parse_timestamp(token.get("expires")),
        parse_timestamp(annotations.get(RENEW_ANNOTATION)),
        authorities if annotations.get(BUNDLE_ANNOTATION) == "true" else None,
    )


def decide(
    request: RequestedToken, roles: Document | None, revoked: Revocations, authorities: str, now: datetime
) -> Issue | Keep | RejectIdentity:
    """Decide if credentials are due. `roles` is the ConfigMap of the landscape's roles; `authorities` are PEM.

    Who was revoked gets no new ones for what was issued before: an operator removes `data.token` for that.
    """
    user = request.principal.user
    if landscape_role(roles, user) == "operator":
        return RejectIdentity(f"{USER_ANNOTATION}: {user} is an operator: name a user without that role")
    mine = request.issued_to == user
    if revoked.rejects(user, issued_at=(request.issued_at if mine else None) or now):
        return RejectIdentity(
            f"{user} was revoked: remove the token for new credentials, once the revocation is meant no more"
        )
    if not mine or not request.password or request.expires is None or request.renew_at is None:
        return Issue()
    until = min(request.renew_at, request.expires)
    if request.authorities is not None:
        is_due = request.issued_at is None or now >= request.issued_at + BUNDLE_PERIOD
        if request.authorities != authorities and is_due:
            return Issue()
        until = min(until, now + BUNDLE_PERIOD)
    return Keep(until) if now < until else Issue()


def renewal(issued_at: datetime, life: timedelta) -> datetime:
    """Time at which credentials are renewed: at 80 % of their life, after 24 h at the latest."""
    return issued_at + min(life * RENEWED_AT, LONGEST_UNRENEWED)


def with_token(secret: Document, request: RequestedToken, password: str, authorities: str, now: datetime) -> Document:
    """The Secret with new credentials, and with the authorities when it requests them. Raises BadRequest."""
    token = {"user": request.principal.user, "password": password, "expires": timestamp(now + request.life)}
    metadata = section(secret, "metadata")
    written = {RENEW_ANNOTATION: timestamp(renewal(now, request.life)), ISSUED_ANNOTATION: timestamp(now)}
    annotated = {**metadata, "annotations": {**section(metadata, "annotations"), **written}}
    bundle = authorities if request.authorities is not None else ""
    kubeconfig, data = _kubeconfig(secret), section(secret, "data")
    if kubeconfig is not None:
        given = {_KUBECONFIG: filled(kubeconfig, json.dumps(token), bundle)}
    else:
        given = {_TOKEN: json.dumps(token)} | ({_BUNDLE: bundle} if bundle else {})
        data = {name: value for name, value in data.items() if name != _BUNDLE}
    encoded = {name: base64.b64encode(value.encode()).decode() for name, value in given.items()}
    changed = {**secret, "metadata": annotated, "data": {**data, **encoded}}
    texts = section(changed, "stringData")  # what is written to `data` counts, until a manifest says otherwise
    changed["stringData"] = {name: text for name, text in texts.items() if name not in given}
    return changed if changed["stringData"] else {name: part for name, part in changed.items() if name != "stringData"}


def checking_secret(request: RequestedToken, requester: str) -> Document | None:
    """The Secret that a request's credentials are checked with; the requester is `<name>/<uid>` of its Secret."""
    if not request.password or request.expires is None or request.issued_to != request.principal.user:
        return None
    name = f"requested-{hashlib.sha256(f'{requester}/{request.password}'.encode()).hexdigest()[:16]}"
    secret = credentials_secret(name, request.principal, request.expires, password=request.password)
    secret["metadata"]["annotations"] = {REQUESTED_BY_ANNOTATION: requester}
    return secret


def _life(text: Any) -> timedelta:
    if text is None:
        return DEFAULT_LIFE
    try:
        life = parse_duration(text)
    except ValueError as error:
        raise BadRequest(f"metadata.annotations.{DURATION_ANNOTATION}: {error}") from error
    if not SHORTEST_LIFE <= life <= LONGEST_LIFE:
        raise BadRequest(f"metadata.annotations.{DURATION_ANNOTATION}: {text}: between 10m and 720h")
    return life


def _kubeconfig(secret: Document) -> str | None:
    """The kubeconfig that is to be filled; None without one. Raises BadRequest when it is no text."""
    if isinstance(text := section(secret, "stringData").get(_KUBECONFIG), str):
        return text
    encoded = section(secret, "data").get(_KUBECONFIG)
    return None if encoded is None else _decoded(encoded)


def _content(secret: Document) -> tuple[str, str]:
    """The token and the authorities that are there, "" without. Raises BadRequest for a kubeconfig that is none."""
    if (kubeconfig := _kubeconfig(secret)) is not None:
        try:
            read = read_kubeconfig(kubeconfig)
        except BadRequest as error:
            raise BadRequest(f"data.{_KUBECONFIG}: {error.message}") from error
        return read.token, read.authorities
    data = section(secret, "data")
    return _decoded(data.get(_TOKEN)), _decoded(data.get(_BUNDLE))


def _decoded(encoded: Any) -> str:
    try:
        return base64.b64decode(encoded, validate=True).decode()
    except (ValueError, TypeError):
        return ""


def _token(text: str) -> Document:
    """The credentials that are there; empty when they cannot be read: they are written anew."""
    try:
        return decode_json(text.encode(), dict[str, Any])
    except (msgspec.MsgspecError, ValueError, TypeError):
        return {}
