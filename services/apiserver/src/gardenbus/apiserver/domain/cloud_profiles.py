"""The cloud profile of a shoot, and a NamespacedCloudProfile merged with its parent."""

from collections.abc import Mapping

from gardenbus.apiserver.domain.merged_profiles import merged_profile_spec
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import namespace_of
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
