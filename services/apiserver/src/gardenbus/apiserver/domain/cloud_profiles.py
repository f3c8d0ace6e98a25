"""The cloud profile of a shoot, and a NamespacedCloudProfile merged with its parent."""

import copy
from collections.abc import Mapping
from typing import Any

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings, namespace_of
from gardenbus.common.api.garden.profile_parts import profile_key as key_of_profile
from gardenbus.common.api.keys import ObjectKey


def profile_key(shoot: Document) -> ObjectKey | None:
    """The profile that a shoot names; None when it names none."""
    return key_of_profile(section(shoot, "spec"), namespace_of(shoot))


def is_of_one_parent(one: ObjectKey | None, other: ObjectKey | None, profiles: Mapping[ObjectKey, Document]) -> bool:
    """True when two profiles have the same CloudProfile at their root; one that is missing has none."""
    root = _root(one, profiles)
    return root is not None and root == _root(other, profiles)


def _root(key: ObjectKey | None, profiles: Mapping[ObjectKey, Document]) -> ObjectKey | None:
    if key is None or key.kind == "cloudprofile":
        return key
    profile = profiles.get(key)
    return parent_key(profile) if profile is not None else None


def parent_key(profile: Document) -> ObjectKey | None:
    """The CloudProfile above a NamespacedCloudProfile; None when it names none."""
    name = section(profile, "spec", "parent").get("name")
    return ObjectKey("cloudprofile", "", name) if isinstance(name, str) and name else None


def with_parent(profile: Document, parent: Document, *, generation: int | None = None) -> Document:
    """A NamespacedCloudProfile with the merged profile in its status, where schedulers read it.

    `generation` is that of the profile, where there is one already.
    """
    merged = merged_profile_spec(section(profile, "spec"), section(parent, "spec"))
    status = {**section(profile, "status"), "cloudProfileSpec": merged}
    if generation is not None:
        status["observedGeneration"] = generation
    return {**profile, "status": status}


def merged_profile_spec(own: Document, parent: Document) -> Document:
    """The parent's spec with what a NamespacedCloudProfile adds.

    Versions and images of the parent's are overridden field by field, machine and volume types are added, limits
    replace. Source: Gardener's `controllermanager/controller/namespacedcloudprofile`.
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
            merged[field] = _merge_named(own[field], merged.get(field) or [], "name", adds=True)
    if isinstance(own.get("limits"), dict):
        merged["limits"] = {**section(merged, "limits"), **own["limits"]}
    bundles = [bundle for bundle in (parent.get("caBundle"), own.get("caBundle")) if isinstance(bundle, str)]
    if bundles:
        merged["caBundle"] = "\n".join(bundles)
    return merged


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
            merged[entry[key]] = {**merged.get(entry[key], {}), **entry}
    return list(merged.values())


def _named(value: Any, key: str) -> list[Document]:
    """The entries of what should be a list that have a name; validation rejects the others."""
    return [entry for entry in mappings(value) if isinstance(entry.get(key), str)]
