"""The rules of ExposureClasses: a handler, which stays, and what is merged into new shoots."""

from gardenbus.common.api.document import Document
from gardenbus.common.api.validation.field_cursor import FieldCursor
from gardenbus.common.api.validation.metadata import label_problem
from gardenbus.common.api.validation.shared import check_seed_selector, check_tolerations


def check(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of an ExposureClass."""
    manifest.text("handler", required=True, rule=label_problem if old is None else None)
    scheduling = manifest.section("scheduling")
    check_seed_selector(scheduling)
    check_tolerations(scheduling)
    manifest.same_as(old, "handler", "shoots are exposed by it")
