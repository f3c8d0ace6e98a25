"""The rules of CloudProfiles. Source: Gardener's `pkg/api/core/validation/cloudprofile.go`, for what is read here."""

from gardenbus.common.api.document import Document
from gardenbus.common.api.validation.field_cursor import FieldCursor, unique
from gardenbus.common.api.validation.shared import check_access_restrictions, check_seed_selector


def check(manifest: FieldCursor, _old: Document | None) -> None:
    """Note every problem of a CloudProfile."""
    spec = manifest.section("spec", required=True)
    spec.text("type", required=True)
    check_seed_selector(spec)
    regions = spec.entries("regions")
    for region in regions:
        region.text("name", required=True)
        check_access_restrictions(region)
        region.named_entries("zones")
    unique(regions, "name")
    check_offers(spec)


def check_offers(spec: FieldCursor) -> None:
    """Note problems in what a profile offers: versions, machine types, images, volume types."""
    spec.section("kubernetes").named_entries("versions", "version")
    for field in ("machineTypes", "volumeTypes"):
        spec.named_entries(field)
    images = spec.entries("machineImages")
    for image in images:
        image.text("name", required=True)
        image.named_entries("versions", "version")
    unique(images, "name")
