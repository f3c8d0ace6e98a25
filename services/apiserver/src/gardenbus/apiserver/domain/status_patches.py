"""Patches of a status by people and their controllers, beside the reports of gardenlets.

What is decided by handing over a control plane stays with reports: `status.seedName` moves as a report may move it, and
`observedGeneration` never decreases. A patch ends no deletion: that takes the finalizer, which is no part of a status.
"""

from datetime import datetime
from typing import Any

from gardenbus.apiserver.domain import merging
from gardenbus.apiserver.domain.fields.unknown import check_unknown_status
from gardenbus.apiserver.domain.report_admission import check_seed_claim, with_highest_observed_generation
from gardenbus.apiserver.domain.validation.manifest import validate_status_update
from gardenbus.common.api.document import Document, encode, section
from gardenbus.common.api.garden.shoot_status import with_status_label
from gardenbus.common.errors import BadRequest

LARGEST_STATUS = 256 * 1024
"""Bytes of a status that a client may write."""


def status_patch_in(body: Document) -> Document:
    """The patch of a status in a body. Raises BadRequest."""
    status: Any = body.get("status")
    if not isinstance(status, dict):
        raise BadRequest('status: a patch of a status is {"status": {…}}')
    return status  # pyright: ignore[reportUnknownVariableType]


def with_patched_status(document: Document, patch: Document, now: datetime) -> Document:
    """The object with its status patched; nothing else of it changes. Raises BadRequest, InvalidResource, Forbidden."""
    before = section(document, "status")
    status: Document = merging.merge_patch({"status": before}, {"status": patch}).get("status") or {}
    size = len(encode(status))
    if size > LARGEST_STATUS:
        raise BadRequest(f"status: it would have {size:,} bytes as JSON, {LARGEST_STATUS:,} are allowed")
    if document.get("kind") == "Shoot":
        check_seed_claim(document, {"seedName": status.get("seedName") or "", **_operation_of(status)})
    check_unknown_status(document, patch, status)
    patched = {**document, "status": with_highest_observed_generation(before, status)}
    validate_status_update(patched, document, now)
    return with_status_label(patched) if document.get("kind") == "Shoot" else patched


def _operation_of(status: Document) -> Document:
    return {"lastOperation": status["lastOperation"]} if "lastOperation" in status else {}
