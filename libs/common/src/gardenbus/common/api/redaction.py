"""Redaction of manifests: the contents of Secrets, and credentials wherever they stand. Pure."""

from typing import Any, cast

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
            if isinstance(shown.get(field), dict):
                shown[field] = dict.fromkeys(section(shown, field), HIDDEN)
        _forget_last_applied(shown)
    if kind == STATE_KIND:
        shown["spec"] = dict.fromkeys(section(shown, "spec"), HIDDEN)
        _forget_last_applied(shown)
    return shown


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
