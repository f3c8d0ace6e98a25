"""Rules of Secrets and InternalSecrets: base64 in `data`, text in `stringData`, and what their types need.

Source: ValidateSecret in kubernetes/kubernetes, and Gardener's `pkg/api/core/validation/internalsecret.go`.
"""

import json
from base64 import b64decode
from collections.abc import Mapping

from gardenbus.apiserver.domain.validation.data_entries import check_entries, check_immutable
from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.common.api.document import Document, section

OPAQUE = "Opaque"
"""Type of a Secret that states none."""

_SSH_KEY = "ssh-privatekey"
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": (_SSH_KEY,),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
}
"""Entries that Secrets of a type have."""
_OF_REGISTRIES = (".dockerconfigjson", ".dockercfg")
_BASIC = ("username", "password")
_ACCOUNT = "kubernetes.io/service-account.name"
_MOST_BYTES = 1024 * 1024


def check(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of a Secret; its content is not shown."""
    kind = manifest.text("type") or OPAQUE
    texts = manifest.text_map("stringData")
    check_immutable(manifest, old, ("data", "stringData"))
    check_entries(manifest, "data", "stringData")
    contents: dict[str, bytes] = {}
    for key, value in manifest.text_map("data").items():
        try:
            contents[key] = b64decode(value, validate=True)
        except ValueError:
            manifest.add_error(f"data[{key[:80]}]", "is not base64: write plain text below stringData")
    contents |= {key: text.encode(errors="surrogatepass") for key, text in texts.items()}
    if (size := sum(map(len, contents.values()))) > _MOST_BYTES:
        manifest.add_error("data", f"has {size:,} bytes, {_MOST_BYTES:,} are allowed")
    before = str((old or {}).get("type") or OPAQUE)
    if old is not None and kind != before:
        manifest.add_error("type", f"cannot be changed ({before} stays): make a new Secret")
    _check_type(manifest, kind, {**section(manifest.content, "data"), **texts}, contents)


def _check_type(manifest: FieldCursor, kind: str, entries: Document, contents: Mapping[str, bytes]) -> None:
    """Note what a Secret of a type needs and has not."""
    needed = _NEEDED.get(kind, ())
    for name in needed:
        if name not in entries or (name == _SSH_KEY and not entries[name]):
            manifest.add_error(f"data[{name}]", f"is needed in a Secret of type {kind}")
        elif name in _OF_REGISTRIES and not _is_mapping(contents.get(name, b"{}")):
            manifest.add_error(f"data[{name}]", "must be a JSON mapping")
    if kind == "kubernetes.io/basic-auth" and not any(name in entries for name in _BASIC):
        for name in _BASIC:
            manifest.add_error(f"data[{name}]", f"is needed in a Secret of type {kind}, or the other one")
    annotations = section(manifest.content, "metadata", "annotations")
    if kind == "kubernetes.io/service-account-token" and not annotations.get(_ACCOUNT):
        manifest.add_error(f"metadata.annotations[{_ACCOUNT}]", f"is needed in a Secret of type {kind}")


def _is_mapping(content: bytes) -> bool:
    try:
        found: object = json.loads(content)
    except ValueError:
        return False
    return isinstance(found, dict) or found is None
