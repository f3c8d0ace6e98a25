"""Guards of a changed profile: no version, region, type or image that a shoot uses is taken out of it.

Facts: the profile before and after the change; of a CloudProfile also the NamespacedCloudProfiles below it, as their
shoots use what it offers; of a NamespacedCloudProfile its parent. A shoot that is being deleted uses nothing.

Source: Gardener's plugin ResourceReferenceManager, for versions and images; regions and types are kept likewise.
"""

from collections.abc import Iterator, Sequence

from gardenbus.apiserver.domain.cloud_profiles import merged_profile_spec, parent_key
from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.apiserver.domain.related_objects import ProfilesBelowQuery, RelatedObjects, RelatedQuery
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import is_deleting, key_of_document, name_of
from gardenbus.common.api.garden.profile_parts import ProfilePart, offered_parts, part_references
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.store import WritePrecondition

STAYS = RejectionMessage("spec.{field}: {part} stays while shoots{profile} use it")


def removal_queries(profile: Document, old: Document | None) -> Sequence[RelatedQuery]:
    """Query of the profiles below a CloudProfile, only when something is removed from it."""
    if old is None or not _removed(section(old, "spec"), section(profile, "spec")):
        return ()
    return (ProfilesBelowQuery(name_of(profile)),)


def removal_guards(profile: Document, old: Document | None, related: RelatedObjects) -> Sequence[WritePrecondition]:
    """Conditions of the write: nobody uses what is removed."""
    if old is None or is_deleting(profile):
        return ()
    before, after = section(old, "spec"), section(profile, "spec")
    if profile.get("kind") == "NamespacedCloudProfile":
        return _guards_of_namespaced(profile, before, after, related)
    guards = list(_guards(ObjectKey("cloudprofile", "", name_of(profile)), before, after))
    for below in related.profiles_below.get(name_of(profile), ()):
        own, key = section(below, "spec"), key_of_document(below)
        guards += _guards(key, merged_profile_spec(own, before), merged_profile_spec(own, after))
    return guards


def _guards_of_namespaced(
    profile: Document, before: Document, after: Document, related: RelatedObjects
) -> Sequence[WritePrecondition]:
    above = parent_key(profile)
    parent = section(related.objects.get(above) or {}, "spec") if above is not None else {}
    merged_before, merged_after = (merged_profile_spec(own, parent) for own in (before, after))
    return list(_guards(key_of_document(profile), merged_before, merged_after))


def _guards(profile: ObjectKey, before: Document, after: Document) -> Iterator[WritePrecondition]:
    removed = _removed(before, after)
    for part, reference in zip(removed, part_references(profile, removed), strict=True):
        of_namespaced = f" of {profile}" if profile.namespace else ""
        yield WritePrecondition("references", reference, STAYS(field=part.field, part=part.name, profile=of_namespaced))


def _removed(before: Document, after: Document) -> Sequence[ProfilePart]:
    """Parts that are not offered any more, in order."""
    return sorted(offered_parts(before) - offered_parts(after))
