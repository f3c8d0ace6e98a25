"""Rules of Secrets: base64 in `data`, text in `stringData`."""

from base64 import b64decode
from collections.abc import Mapping

from gardenbus.apiserver.domain.validation.data_entries import check_entries, check_immutable
from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.common.api.document import Document, section

OPAQUE = "Opaque"
"""Type of a Secret that states none."""

_NEEDED: Mapping[str, tuple[str, ...]] = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
}
"""Entries that Secrets of a type have. Source: ValidateSecret in kubernetes/kubernetes."""


def check(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of a Secret; its content is not shown."""
    kind = manifest.text("type") or OPAQUE
    texts = manifest.text_map("stringData")
    check_entries(manifest, "data", "stringData")
    check_immutable(manifest, old, ("data", "stringData"))
    for key, value in manifest.text_map("data").items():
        try:
            b64decode(value, validate=True)
        except ValueError:
            manifest.add_error(f"data[{key[:80]}]", "is not base64: write plain text below stringData")
    before = str((old or {}).get("type") or OPAQUE)
    if old is not None and kind != before:
        manifest.add_error("type", f"cannot be changed ({before} stays): make a new Secret")
    for name in _NEEDED.get(kind, ()):
        if name not in section(manifest.content, "data") and name not in texts:
            manifest.add_error(f"data[{name}]", f"is needed in a Secret of type {kind}")
