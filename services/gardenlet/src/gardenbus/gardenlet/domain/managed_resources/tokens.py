"""Tokens of ServiceAccounts in a shoot, for components outside of it: who requests one, and when it is renewed.

Source: Gardener's `pkg/controller/tokenrequestor/reconciler.go`.
"""

import base64
import binascii
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple, cast

import yaml

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.durations import parse_duration
from gardenbus.common.api.manifests.strict_yaml import read_yaml
from gardenbus.common.errors import BadRequest
from gardenbus.common.ports.clock import parse_timestamp
from gardenbus.gardenlet.domain.managed_resources.names import GROUP, annotations_of

PURPOSE = f"{GROUP}/purpose"
CLASS = f"{GROUP}/class"
SELECTOR = f"{PURPOSE}=token-requestor,{CLASS}=shoot"
AUDIENCE = "gardener"
RENEWED_AT = f"serviceaccount.{GROUP}/token-renew-timestamp"
_ACCOUNT = f"serviceaccount.{GROUP}/"
_TARGET = f"token-requestor.{GROUP}/target-secret-"
_DEFAULT_LIFE = timedelta(hours=12)
_LONGEST_LIFE = timedelta(hours=24)
_SHARE = 0.8
_JITTER = 0.05
_TOKEN, _KUBECONFIG = "token", "kubeconfig"


class AccountTokenRequest(NamedTuple):
    """A Secret's request for a token. `target` is the Secret of the shoot that gets it, if not the Secret itself."""

    namespace: str
    account: str
    labels: Mapping[str, str]
    life: timedelta
    target: tuple[str, str] | None


def is_token_secret(live: Document) -> bool:
    """True for a Secret that requests a token, by its labels."""
    labels = section(live, "metadata", "labels")
    return labels.get(PURPOSE) == "token-requestor" and labels.get(CLASS) == "shoot"


def token_request_of(secret: Document) -> AccountTokenRequest:
    """The request of a Secret. Raises BadRequest naming the annotation that is wrong."""
    annotations = annotations_of(secret)
    name, namespace = annotations.get(f"{_ACCOUNT}name"), annotations.get(f"{_ACCOUNT}namespace")
    for field, value in (("name", name), ("namespace", namespace)):
        if not value:
            raise BadRequest(f"annotation {_ACCOUNT}{field} is missing: give the {field} of the ServiceAccount")
    target = (annotations.get(f"{_TARGET}namespace"), annotations.get(f"{_TARGET}name"))
    return AccountTokenRequest(
        str(namespace),
        str(name),
        _labels(annotations.get(f"{_ACCOUNT}labels")),
        _life(annotations.get(f"{_ACCOUNT}token-expiration-duration")),
        (str(target[0]), str(target[1])) if all(target) else None,
    )


def renewal_delay(secret: Document, holder: Document | None, now: datetime) -> timedelta | None:
    """Time until a token is to be renewed; None: now. `holder` is the Secret that holds it."""
    renewed_at = parse_timestamp(annotations_of(secret).get(RENEWED_AT))
    if renewed_at is None or holder is None or not _has_token(holder) or now >= renewed_at:
        return None
    return renewed_at - now


def renewal_after(expires_at: datetime, now: datetime, random_share: float) -> timedelta:
    """Time after which a new token is renewed: 80 % of its life, and up to 5 % of that more."""
    return min(expires_at - now, _LONGEST_LIFE) * _SHARE * (1 + _JITTER * random_share)


def with_token(holder: Document, token: str, ca_bundle: bytes | None = None) -> Document:
    """Data of a Secret with a token in it: the kubeconfig's, where it has one. Raises BadRequest."""
    data = dict(section(holder, "data"))
    kubeconfig = _kubeconfig(data)
    if kubeconfig is None:
        data[_TOKEN] = _encoded(token.encode())
        if ca_bundle is not None:
            data["bundle.crt"] = _encoded(ca_bundle)
        return data
    user = _current(kubeconfig, "users", "user")
    if user is not None:
        user["token"] = token
    if ca_bundle is not None and (cluster := _current(kubeconfig, "clusters", "cluster")) is not None:
        cluster["certificate-authority-data"] = _encoded(ca_bundle)
    data[_KUBECONFIG] = _encoded(yaml.safe_dump(kubeconfig, sort_keys=False).encode())
    return data


def wants_ca_bundle(secret: Document) -> bool:
    """True if the shoot's certificate authority belongs beside the token."""
    return annotations_of(secret).get(f"{_ACCOUNT}inject-ca-bundle") == "true"


def without_token() -> Document:
    """Merge patch of the data of a Secret whose token is in another one."""
    return {_TOKEN: None, _KUBECONFIG: None}


def _has_token(holder: Document) -> bool:
    data = section(holder, "data")
    try:
        kubeconfig = _kubeconfig(data)
    except BadRequest:
        return False
    if kubeconfig is None:
        return bool(data.get(_TOKEN))
    return bool((_current(kubeconfig, "users", "user") or {}).get("token"))


def _kubeconfig(data: Document) -> Document | None:
    text = data.get(_KUBECONFIG)
    if text is None:
        return None
    try:
        values = read_yaml(base64.b64decode(str(text), validate=True).decode())
    except (binascii.Error, ValueError, BadRequest) as error:
        raise BadRequest(f"data.kubeconfig is no kubeconfig: {error}") from error
    if not values or not isinstance(values[0], dict):
        raise BadRequest("data.kubeconfig is no kubeconfig: it is no mapping")
    return cast("Document", values[0])


def _current(kubeconfig: Document, plural: str, singular: str) -> Document | None:
    """The user or cluster of the current context, to be changed in place."""
    context = _named(kubeconfig, "contexts", str(kubeconfig.get("current-context") or ""))
    name = str(section(context or {}, "context").get(singular) or "")
    entry = _named(kubeconfig, plural, name)
    if entry is None:
        return None
    content: Document = entry.setdefault(singular, {})
    return content


def _named(kubeconfig: Document, plural: str, name: str) -> Document | None:
    entries: Any = kubeconfig.get(plural)
    for entry in cast("list[Any]", entries) if isinstance(entries, list) else []:
        if isinstance(entry, dict) and cast("Document", entry).get("name") == name:
            return cast("Document", entry)
    return None


def _labels(text: object) -> dict[str, str]:
    if not text:
        return {}
    try:
        labels: Any = json.loads(str(text))
    except ValueError as error:
        raise BadRequest(f"annotation {_ACCOUNT}labels is no JSON: {error}") from error
    if not isinstance(labels, dict):
        raise BadRequest(f'annotation {_ACCOUNT}labels must be a JSON object such as {{"app": "x"}}')
    return {str(name): str(value) for name, value in cast("Document", labels).items()}


def _life(text: object) -> timedelta:
    try:
        return _DEFAULT_LIFE if text is None else parse_duration(text)
    except ValueError as error:
        raise BadRequest(f"annotation {_ACCOUNT}token-expiration-duration {error}") from error


def _encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()
