"""Rules of ShootStates: each entry names what it is the state of.

Source: Gardener's `pkg/api/core/validation/shootstate.go`.
"""

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.metadata import check_label_name
from gardenbus.apiserver.domain.validation.shared import CONFIGURATIONS, check_reference, check_resources
from gardenbus.common.api.document import Document


def check(manifest: FieldCursor, old: Document | None) -> None:  # noqa: ARG001
    """Note every problem of a ShootState."""
    check_label_name(manifest)
    spec = manifest.section("spec")
    for entry in spec.entries("gardener"):
        entry.text("name", required=True)
    for extension in spec.entries("extensions"):
        extension.text("kind", required=True)
        extension.text("purpose", filled=True)
        check_resources(extension, CONFIGURATIONS)
    for resource in spec.entries("resources"):  # gardenlets here state it below resourceRef
        check_reference(resource.section("resourceRef") or resource, CONFIGURATIONS)
