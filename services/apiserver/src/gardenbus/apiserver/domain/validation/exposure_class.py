"""The rules of ExposureClasses: a handler, and what is merged into new shoots; both stay.

Source: Gardener's `pkg/api/core/validation/exposureclass.go`.
"""

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.metadata import label_problem
from gardenbus.apiserver.domain.validation.shared import check_seed_selector, check_tolerations
from gardenbus.common.api.document import Document

LONGEST_HANDLER = 34
"""Characters of a handler: the name of a namespace is made of it."""


def check(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of an ExposureClass."""
    manifest.text("handler", required=True, rule=_handler_problem if old is None else None)
    scheduling = manifest.section("scheduling")
    check_seed_selector(scheduling)
    check_tolerations(scheduling)
    manifest.same_as(old, "handler", "shoots are exposed by it")
    if old is not None:
        manifest.unchanged(old, "scheduling", "shoots were placed by it")


def _handler_problem(handler: str) -> str:
    is_long = len(handler) > LONGEST_HANDLER
    return f"must have at most {LONGEST_HANDLER} characters, not {len(handler)}" if is_long else label_problem(handler)
