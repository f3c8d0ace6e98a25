"""CertificateSigningRequests (certificates.k8s.io/v1): views of them, and the conditions that decide about them.

Conditions as Kubernetes': `Approved`, `Denied` and `Failed`, each `True` once it is there; they never go again. A
request that was approved, and has a certificate, is kept for as long as the certificate lives: these requests are the
record of what was issued.
"""

import base64
import binascii
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

from gardenbus.common.api.conditions import TRUE, conditions_of, get_condition, merge_conditions
from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.identity.principals import Principal, groups_of, principal_of
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import BadRequest

API_VERSION = "certificates.k8s.io/v1"
KIND = "CertificateSigningRequest"
SINGULAR = "certificatesigningrequest"

SIGNER = "kubernetes.io/kube-apiserver-client"
"""The signer of client certificates; requests to others are left to others. Source: Gardener's gardenlet."""

RENEWALS = ("renew", "renew-kubeconfig")
"""Operations (of a Seed or MemberCluster) that demand a new client certificate; the second is Gardener's."""

USAGES = ("client auth", "digital signature", "key encipherment")
"""Usages of a client certificate."""

APPROVED, DENIED, FAILED = "Approved", "Denied", "Failed"
DECISIONS = (APPROVED, DENIED, FAILED)

SERIAL = "gardenbus.io/serial"
"""Annotation of a request whose certificate was issued: its serial number, as revocations write it."""

NOT_AFTER = "gardenbus.io/not-after"
"""Annotation of the same: when the certificate ends (RFC 3339)."""

USER = "gardenbus.io/user"
"""Annotation of the same: whose certificate it is."""

SHORTEST_SECONDS = 60
LONGEST_SECONDS = 365 * 86_400


_UNKNOWN = datetime.min.replace(tzinfo=UTC)


class SigningRequest(NamedTuple):
    """A request, as far as it is decided upon."""

    name: str
    uid: str
    created_at: datetime
    pem: bytes
    """The PKCS #10 request, PEM."""
    signer: str
    usages: tuple[str, ...]
    username: str
    expiration_seconds: int | None
    is_approved: bool
    is_denied: bool
    is_failed: bool
    certificate: bytes
    """PEM; empty before it was issued."""
    serial: str
    not_after: datetime | None


def key_of_request(name: str) -> ObjectKey:
    """The key of a request."""
    return ObjectKey(SINGULAR, "", name)


def read_signing_request(stored: StoredObject) -> SigningRequest:
    """View of a stored request; what cannot be read is empty."""
    document = stored.document()
    spec, status = section(document, "spec"), section(document, "status")
    annotations = section(document, "metadata", "annotations")
    expiration: Any = spec.get("expirationSeconds")
    return SigningRequest(
        name=stored.key.name,
        uid=stored.uid,
        created_at=_instant(stored.created_at) or _UNKNOWN,
        pem=decoded(spec.get("request")),
        signer=str(spec.get("signerName") or ""),
        usages=tuple(str(each) for each in cast("Sequence[Any]", spec.get("usages") or ())),
        username=str(spec.get("username") or ""),
        expiration_seconds=expiration if isinstance(expiration, int) else None,
        is_approved=has_condition(document, APPROVED),
        is_denied=has_condition(document, DENIED),
        is_failed=has_condition(document, FAILED),
        certificate=decoded(status.get("certificate")),
        serial=str(annotations.get(SERIAL) or ""),
        not_after=_instant(annotations.get(NOT_AFTER)),
    )


def decoded(text: Any) -> bytes:
    """Bytes of a base64 field; empty when it is none."""
    try:
        return base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except (binascii.Error, ValueError):
        return b""


def has_condition(document: Document, kind: str) -> bool:
    """True when a condition of this type is there and True."""
    found = get_condition(conditions_of(document), kind)
    return found is not None and found.get("status", TRUE) == TRUE


def with_condition(document: Document, kind: str, reason: str, message: str, now: str) -> Document:
    """The request with one more condition (`now` in RFC 3339)."""
    condition: Document = {"type": kind, "status": TRUE, "reason": reason, "message": message}
    condition |= {"lastUpdateTime": now, "lastTransitionTime": now}
    conditions = merge_conditions(conditions_of(document), condition)
    return {**document, "status": {**section(document, "status"), "conditions": conditions}}


def with_certificate(document: Document, pem: bytes, *, serial: str, not_after: str, user: str) -> Document:
    """The request with its certificate, and what the record of it says (`not_after` in RFC 3339)."""
    metadata = section(document, "metadata")
    annotations = {**section(metadata, "annotations"), SERIAL: serial, NOT_AFTER: not_after, USER: user}
    status = {**section(document, "status"), "certificate": base64.b64encode(pem).decode()}
    return {**document, "metadata": {**metadata, "annotations": annotations}, "status": status}


def with_requester(document: Document, old: Document | None, user: str) -> Document:
    """The request as `user` sends it: who sent it is the server's to say, and its spec never changes."""
    if old is not None:
        return {**document, "spec": section(old, "spec")}
    spec = {name: value for name, value in section(document, "spec").items() if name not in ("uid", "extra")}
    return {**document, "spec": {**spec, "username": user, "groups": list(_groups(user))}}


def new_signing_request(name: str, pem: bytes, *, expiration_seconds: int | None = None) -> Document:
    """The manifest that a client sends."""
    spec: Document = {"request": base64.b64encode(pem).decode(), "signerName": SIGNER, "usages": list(USAGES)}
    if expiration_seconds is not None:
        spec["expirationSeconds"] = expiration_seconds
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": spec}


def _groups(user: str) -> Sequence[str]:
    try:
        principal: Principal = principal_of(user)
    except BadRequest:  # the services' own, and nobody in particular
        return ()
    return groups_of(principal)


def _instant(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
