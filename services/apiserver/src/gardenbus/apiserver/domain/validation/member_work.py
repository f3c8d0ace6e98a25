"""The rules of what agents report on Works."""

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.status import check_conditions, check_status

_IDENTIFIER_TEXTS = ("group", "version", "kind", "namespace", "name", "resource")


def check_work_status(manifest: FieldCursor) -> None:
    """Note conditions, of the Work and of its manifests, that could not be read."""
    status = check_status(manifest)
    for manifest_condition in status.entries("manifestConditions"):
        identifier = manifest_condition.section("identifier", required=True)
        identifier.integer("ordinal", least=0)
        for field in _IDENTIFIER_TEXTS:
            identifier.text(field)
        check_conditions(manifest_condition, "conditions")
