"""Guards of a changed profile: no version, region, type or image that a shoot uses is taken out of it.

Facts: the profile before and after the change; of a CloudProfile also the NamespacedCloudProfiles below it, as their
shoots use what it offers; of a NamespacedCloudProfile its parent. A shoot that is being deleted uses nothing.

What NamespacedCloudProfiles below a CloudProfile name of it stays too, and no image of theirs comes into it. Source:
Gardener's plugin ResourceReferenceManager, for versions and images; regions and types are kept likewise.
"""

from collections.abc import Iterator, Sequence

from gardenbus.apiserver.domain.cloud_profiles import parent_key
from gardenbus.apiserver.domain.merged_profiles import merged_profile_spec
from gardenbus.apiserver.domain.profile_overrides import parent_problems
from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.apiserver.domain.related_objects import ProfilesBelowQuery, RelatedObjects, RelatedQuery
from gardenbus.apiserver.domain.validation.field_cursor import invalid
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import is_deleting, key_of_document, name_of
from gardenbus.common.api.garden.profile_parts import MACHINE_IMAGES, ProfilePart, offered_parts, part_references
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import FieldProblem
from gardenbus.common.ports.store import WritePrecondition

BELOW = RejectionMessage("with {profile} below it: {reason}")
STAYS = RejectionMessage("spec.{field}: {part} stays while shoots{profile} use it")


def removal_queries(profile: Document, old: Document | None) -> Sequence[RelatedQuery]:
    """Query of the profiles below a CloudProfile, only when something is removed from it, or an image is added."""
    before, after = offered_parts(section(old or {}, "spec")), offered_parts(section(profile, "spec"))
    is_changed = old is not None and (before - after or any(part.field == MACHINE_IMAGES for part in after - before))
    return (ProfilesBelowQuery(name_of(profile)),) if is_changed else ()


def admit_below(profile: Document, old: Document | None, related: RelatedObjects) -> None:
    """Raise InvalidResource with each part of a changed CloudProfile that profiles below it are at odds with."""
    before, after = section(old or {}, "spec"), section(profile, "spec")
    problems = [
        FieldProblem(each.field, BELOW(profile=key_of_document(below), reason=each.reason))
        for below in related.profiles_below.get(name_of(profile), ())
        if old is not None and not is_deleting(profile) and not is_deleting(below)
        for each in parent_problems(section(below, "spec"), before, after)
    ]
    if problems:
        raise invalid(problems)


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
