"""JSON patches of requests."""

from typing import Any

from gardenbus.common.api.document import Document
from gardenbus.common.api.json_patches import patched
from gardenbus.common.errors import BadRequest
from gardenbus.kubeapi.domain.statuses import failed_patch


def json_patched(present: Document, operations: Any) -> Document:
    """An object after a JSON patch. Raises BadRequest for what is none, Rejected for one that cannot be carried out."""
    try:
        return patched(present, operations)
    except BadRequest as error:
        if not isinstance(operations, list):
            raise
        raise failed_patch(error.message) from error
