"""The rules of NamespacedCloudProfiles: a parent, which stays, and what is added to it."""

from gardenbus.apiserver.domain.validation.cloudprofile import check_offers
from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.shared import check_seed_selector
from gardenbus.common.api.document import Document, section


def check(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of a NamespacedCloudProfile."""
    merged = manifest.nested("status", "cloudProfileSpec")
    merged.text("type")
    check_seed_selector(merged)
    spec = manifest.section("spec", required=True)
    check_offers(spec, section(old or {}, "spec"))
    for version in spec.section("kubernetes").entries("versions"):
        if version.has("classification"):
            version.add_error("classification", "is set in the parent alone: leave it out")
    parent = spec.section("parent", required=True)
    parent.choice("kind", ("CloudProfile",))
    parent.text("name", required=True)
    if old is not None and parent:
        parent.same_as(section(old, "spec", "parent"), "name", "make a new profile below the other parent")
