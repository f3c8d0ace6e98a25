"""Redaction of manifests: the contents of Secrets, and credentials wherever they stand. Pure."""

from typing import Any, cast

import msgspec

from gardenbus.common.api.document import Document, section

HIDDEN = "(hidden)"

SECRET_KINDS = frozenset({"secret", "internalsecret"})
"""Kinds whose `data` is not shown; their keys are."""

STATE_KIND = "shootstate"
"""Holds the private keys of a control plane."""

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""kubectl's copy of a whole manifest, in an annotation."""

_CREDENTIALS = frozenset(
    {
        "kubeconfig",
        "password",
        "token",
        "bootstraptoken",
        "privatekey",
        "clientsecret",
        "secretaccesskey",
        "serviceaccountkey",
        "serviceaccount.json",
    }
)
"""Fields that hold a credential, in any manifest (in lower case)."""


def redacted(document: Document) -> Document:
    """Return the manifest without credentials; the one given stays as it is."""
    kind = str(document.get("kind", "")).lower()
    shown: Document = _without_credentials(document)
    if kind in SECRET_KINDS:
        for field in ("data", "stringData"):
            if field in shown:
                inner: Any = shown[field]
                shown[field] = dict.fromkeys(cast("Document", inner), HIDDEN) if isinstance(inner, dict) else HIDDEN
        _forget_last_applied(shown)
    if kind == STATE_KIND:
        shown["spec"] = dict.fromkeys(section(shown, "spec"), HIDDEN)
        _forget_last_applied(shown)
    return shown


UNREADABLE = b"(hidden: it names a Secret, and cannot be read to hide its data alone)"
"""Kept in place of a message whose Secrets cannot be told from the rest of it."""


def without_secrets(body: bytes) -> bytes:
    """A message as it may be kept: Secrets, and states of control planes, without their data; else as it is.

    Only JSON is read, in a time that its length bounds: what ended its handler must not do so here too.
    """
    try:
        value: Any = msgspec.json.decode(body)
        hidden = _without_data(value)
        return body if hidden == value else msgspec.json.encode(hidden)
    except (msgspec.MsgspecError, ValueError, RecursionError):  # a decoder reads deeper than functions may call
        named = body.lower()
        return UNREADABLE if any(kind.encode() in named for kind in (*SECRET_KINDS, STATE_KIND)) else body


def _without_data(value: Any) -> Any:
    """A value with the manifests in it redacted that hold secrets."""
    if isinstance(value, list):
        return [_without_data(each) for each in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    fields = cast("Document", value)
    kind = fields.get("kind")
    if isinstance(kind, str) and kind.lower() in (*SECRET_KINDS, STATE_KIND):
        return redacted(fields)
    return {name: _without_data(inner) for name, inner in fields.items()}


def _forget_last_applied(document: Document) -> None:
    annotations = section(document, "metadata", "annotations")
    if LAST_APPLIED in annotations:
        annotations[LAST_APPLIED] = HIDDEN


def _without_credentials(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {
            name: HIDDEN
            if str(name).lower() in _CREDENTIALS and isinstance(inner, str)
            else _without_credentials(inner)
            for name, inner in fields.items()
        }
    if isinstance(value, list):
        return [_without_credentials(inner) for inner in cast("list[Any]", value)]
    return value
