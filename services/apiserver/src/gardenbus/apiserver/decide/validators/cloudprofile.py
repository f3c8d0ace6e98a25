"""The rules of CloudProfiles. Source: Gardener's `pkg/api/core/validation/cloudprofile.go`, for what is read here."""

from gardenbus.apiserver.decide.fields import Place, unique
from gardenbus.apiserver.decide.validators.scheduling import check_access_restrictions, check_seed_selector
from gardenbus.common.resources.document import Document


def check(manifest: Place, old: Document | None) -> None:
    """Note every problem of a CloudProfile."""
    _ = old
    spec = manifest.section("spec", required=True)
    if spec is None:
        return
    spec.text("type", required=True)
    check_seed_selector(spec)
    regions = spec.entries("regions")
    for region in regions:
        region.text("name", required=True)
        check_access_restrictions(region)
        zones = region.entries("zones")
        for zone in zones:
            zone.text("name", required=True)
        unique(zones, "name")
    unique(regions, "name")
    check_offers(spec)


def check_offers(spec: Place) -> None:
    """Note problems in what a profile offers: versions, machine types, images, volume types."""
    if kubernetes := spec.section("kubernetes"):
        _check_versions(kubernetes)
    for field in ("machineTypes", "volumeTypes"):
        named = spec.entries(field)
        for entry in named:
            entry.text("name", required=True)
        unique(named, "name")
    images = spec.entries("machineImages")
    for image in images:
        image.text("name", required=True)
        _check_versions(image)
    unique(images, "name")


def _check_versions(holder: Place) -> None:
    versions = holder.entries("versions")
    for version in versions:
        version.text("version", required=True)
    unique(versions, "version")
