"""Differences between what a Work wants and what the cluster has, as KubeFleet's PatchDetails: a JSON pointer each.

Source: KubeFleet's `pkg/controllers/workapplier/drift_detection_takeover.go`.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

import msgspec

from gardenbus.common.api.document import SERVER_METADATA, Document, canonical, section

MOST_DIFFERENCES = 100
SPEC_HASH = "kubernetes-fleet.io/spec-hash"
"""Annotation of an applied object: the hash of its manifest."""

_HIDDEN = "(redacted)"
_LONGEST_VALUE = 200
_FLEET = "kubernetes-fleet.io/"
_RESERVED = ("kubernetes.io/", "k8s.io/", _FLEET)
_OWN_METADATA = (*SERVER_METADATA, "ownerReferences", "finalizers", "generateName")


class Difference(NamedTuple):
    """One field; "" where it is missing."""

    path: str
    value_in_member: str
    value_in_hub: str

    def detail(self) -> Document:
        """As a PatchDetail."""
        texts = {"valueInMember": self.value_in_member, "valueInHub": self.value_in_hub}
        return {"path": self.path, **{name: text for name, text in texts.items() if text}}


def differences(hub: Mapping[str, Any], member: Mapping[str, Any]) -> list[Difference]:
    """Fields in which an object differs, without what the cluster itself keeps in it. Values of Secrets are hidden."""
    is_secret = (hub.get("kind"), hub.get("apiVersion")) == ("Secret", "v1")
    found: list[Difference] = []
    for path, in_hub, in_member in _walk(compared(hub), compared(member), ""):
        hidden = is_secret and path.startswith(("/data", "/stringData"))
        found.append(Difference(path, _text(in_member, hidden=hidden), _text(in_hub, hidden=hidden)))
        if len(found) == MOST_DIFFERENCES:
            break
    return found


def compared(document: Mapping[str, Any]) -> Document:
    """The part of an object that is compared."""
    metadata = {name: value for name, value in section(document, "metadata").items() if name not in _OWN_METADATA}
    for field in ("labels", "annotations"):
        values = {name: text for name, text in section(metadata, field).items() if not _is_reserved(name)}
        metadata.pop(field, None)
        if values:
            metadata[field] = values
    return {**{name: value for name, value in document.items() if name != "status"}, "metadata": metadata}


def manifest_hash(manifest: Mapping[str, Any]) -> str:
    """Hash of the part of a manifest that is compared."""
    return hashlib.sha256(canonical(compared(manifest))).hexdigest()


def summary(found: list[Difference]) -> str:
    """`/data/a, /data/b and 3 more`."""
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""  # noqa: PLR2004 - as many as a message names
    return ", ".join(each.path for each in found[:3]) + more


def _is_reserved(name: str) -> bool:
    domain = name.partition("/")[0] + "/" if "/" in name else ""
    return any(domain == each or domain.endswith(f".{each}") for each in _RESERVED)


_MISSING = object()


def _walk(hub: Any, member: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Leaves that differ, with their values. Lists are compared place by place."""
    if isinstance(hub, dict) and isinstance(member, dict):
        ours, theirs = cast("dict[str, Any]", hub), cast("dict[str, Any]", member)
        for name in sorted({*ours, *theirs}):
            pointer = f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
            yield from _walk(ours.get(name, _MISSING), theirs.get(name, _MISSING), pointer)
    elif isinstance(hub, list) and isinstance(member, list):
        ours_list, theirs_list = cast("list[Any]", hub), cast("list[Any]", member)
        for place in range(max(len(ours_list), len(theirs_list))):
            ours_value = ours_list[place] if place < len(ours_list) else _MISSING
            theirs_value = theirs_list[place] if place < len(theirs_list) else _MISSING
            yield from _walk(ours_value, theirs_value, f"{path}/{place}")
    elif hub is _MISSING or member is _MISSING or hub != member:
        yield path, hub, member


def _text(value: Any, *, hidden: bool) -> str:
    if value is _MISSING:
        return ""
    if hidden:
        return _HIDDEN
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
