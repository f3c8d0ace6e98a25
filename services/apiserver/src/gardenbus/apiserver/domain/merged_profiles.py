"""A NamespacedCloudProfile merged with its parent."""

import copy
from typing import Any

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings


def merged_profile_spec(own: Document, parent: Document) -> Document:
    """The parent's spec with what a NamespacedCloudProfile adds.

    Of versions of the parent's the expiration is overridden, but an image's version that it offered first stays as it
    is there; machine and volume types are added, or stand for the parent's; limits replace. Source: Gardener's
    `controllermanager/controller/namespacedcloudprofile`.
    """
    merged: Document = copy.deepcopy(parent)
    versions = section(own, "kubernetes").get("versions")
    if isinstance(versions, list):
        kubernetes = section(merged, "kubernetes")
        profiles = _merge_named(kubernetes.get("versions"), versions, "version", adds=False)
        merged["kubernetes"] = {**kubernetes, "versions": profiles}
    if isinstance(own.get("machineImages"), list):
        merged["machineImages"] = _merge_images(merged.get("machineImages"), own["machineImages"])
    for field in ("machineTypes", "volumeTypes"):
        if isinstance(own.get(field), list):
            types = {
                entry["name"]: entry for entry in (*_named(merged.get(field), "name"), *_named(own[field], "name"))
            }
            merged[field] = list(types.values())
    if isinstance(own.get("limits"), dict):
        merged["limits"] = {**section(merged, "limits"), **own["limits"]}
    bundles = [bundle for bundle in (parent.get("caBundle"), own.get("caBundle")) if isinstance(bundle, str)]
    if bundles:
        merged["caBundle"] = "\n".join(bundles)
    return merged


_OF_AN_OWN_VERSION = ("architectures", "capabilityFlavors", "cri", "kubeletVersionConstraint", "classification")
"""Fields of an image's version by which it was offered before the parent offered it too."""


def _merge_images(parent: Any, own: Any) -> list[Document]:
    images = {image["name"]: image for image in _named(parent, "name")}
    for image in _named(own, "name"):
        above = images.get(image["name"], {})
        versions = _merge_named(above.get("versions"), image.get("versions") or [], "version", adds=True)
        images[image["name"]] = {**above, **image, "versions": versions}
    return list(images.values())


def _merge_named(base: Any, over: Any, key: str, *, adds: bool) -> list[Document]:
    """Entries of `base` overridden by those of the same key; the others added at the end, if so wanted."""
    merged = {entry[key]: entry for entry in _named(base, key)}
    for entry in _named(over, key):
        if adds or entry[key] in merged:
            is_own = any(entry.get(field) for field in _OF_AN_OWN_VERSION)
            merged[entry[key]] = entry if is_own else {**merged.get(entry[key], {}), **entry}
    return list(merged.values())


def _named(value: Any, key: str) -> list[Document]:
    """The entries of what should be a list that have a name; validation rejects the others."""
    return [entry for entry in mappings(value) if isinstance(entry.get(key), str)]
