"""Review of what is sent: fields that its kind does not have, and what is taken though nothing acts on it.

What is stored already stays changeable: an unknown field that is there with the same value is warned of, not rejected.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from gardenbus.apiserver.domain.fields.check import FieldFault, field_faults, path_text
from gardenbus.apiserver.domain.fields.unknown import check_unknown_fields
from gardenbus.apiserver.domain.fields.unused import found_fields
from gardenbus.apiserver.domain.kind_actors import actors_of
from gardenbus.apiserver.domain.validation.field_cursor import invalid
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import is_deleting
from gardenbus.common.api.field_validation import FieldValidation, parse_field_validation
from gardenbus.common.api.fields.kinds import sent_shape
from gardenbus.common.api.keys import Header, ObjectKey
from gardenbus.common.api.kinds import resolve
from gardenbus.common.api.manifests.strict_json import ValuePath
from gardenbus.common.api.short_cache import short_cache

_LEAVING = "metadata.deletionTimestamp: it is being deleted, and what is applied goes with it: apply it afterwards"
STATUS_IGNORED = "status is ignored: gardenlets and controllers report it"

Review = Callable[[Document | None], tuple[str, ...]]
"""Warnings about what was sent, given what is stored. Raises InvalidResource in strict validation."""


def validation_of(headers: Mapping[str, str], default: FieldValidation) -> FieldValidation:
    """The validation that a request selects. Raises BadRequest for an unknown word."""
    text = headers.get(Header.VALIDATE)
    return default if text is None else parse_field_validation(text, name=Header.VALIDATE)


def status_review(given: Document) -> Review:
    """Review of the status alone; an unchanged one is no matter."""
    status: object = given.get("status")

    def review(current: Document | None) -> tuple[str, ...]:
        return () if not status or (current is not None and current.get("status") == status) else (STATUS_IGNORED,)

    return review


def reported_review(given: Document) -> Review:
    """Review of a manifest of an agent or a service, whose unknown fields are kept up to a bound.

    Raises InvalidResource beyond it.
    """
    check_unknown_fields(given)
    return status_review(given)


def _deletion_warnings(current: Document | None) -> tuple[str, ...]:
    return (_LEAVING,) if current is not None and is_deleting(current) else ()


def manifest_review(given: Document, key: ObjectKey, validation: FieldValidation) -> Review:
    """Review of a manifest to be applied."""
    api_version, kind = str(given["apiVersion"]), str(given["kind"])
    faults = _faults(given, api_version, kind, validation)
    found = tuple(found_fields(given))
    kind_warnings = _kind_warnings(api_version, kind)
    if not found and not faults and not given.get("status"):
        return lambda current: (*_deletion_warnings(current), *kind_warnings)
    is_read_from_here = bool(section(given, "metadata").get("resourceVersion"))
    review_status = status_review(given)

    def review(current: Document | None) -> tuple[str, ...]:
        field_warnings = _field_warnings(faults, current, key, validation) if faults else ()
        notes = tuple(
            field.warning
            for field in found
            if not (is_read_from_here and _stored_at(field.path, current) == field.value)
        )
        return (*_deletion_warnings(current), *kind_warnings, *field_warnings, *notes, *review_status(current))

    return review


def patch_review(patch: Document, key: ObjectKey, validation: FieldValidation) -> Review:
    """Review of a JSON merge patch; null takes away what has no business there."""
    review_status = status_review(patch)

    def review(current: Document | None) -> tuple[str, ...]:
        if current is None:
            return ()
        kind = str(current["kind"])
        faults = [
            fault for fault in _faults(patch, str(current["apiVersion"]), kind, validation) if fault.value is not None
        ]
        notes = tuple(field.warning for field in found_fields({**patch, "kind": kind}))
        return (*_field_warnings(faults, current, key, validation), *notes, *review_status(current))

    return review


@short_cache(512)
def _kind_warnings(api_version: str, kind: str) -> tuple[str, ...]:
    return () if actors_of(resolve(api_version, kind)) else (f"kind {kind} is stored; nothing acts on it",)


def _faults(given: Document, api_version: str, kind: str, validation: FieldValidation) -> Sequence[FieldFault]:
    shape = None if validation is FieldValidation.IGNORE else sent_shape(api_version, kind)
    return () if shape is None else field_faults(given, shape, kind=kind)


def _field_warnings(
    faults: Sequence[FieldFault], current: Document | None, key: ObjectKey, validation: FieldValidation
) -> tuple[str, ...]:
    """The warnings of faults. Raises InvalidResource for those that are rejected."""
    if validation is FieldValidation.STRICT:
        rejected = [fault.problem for fault in faults if not _is_stored(fault, current)]
        if rejected:
            raise invalid(rejected, f"{key} is invalid: ")
    return tuple(f"{path_text(fault.path)}: {fault.message}" for fault in faults)


def _is_stored(fault: FieldFault, current: Document | None) -> bool:
    return fault.value is not None and _stored_at(fault.path, current) == fault.value


def _stored_at(path: ValuePath, current: Document | None) -> Any:
    """The value at a path of what is stored; None where there is none."""
    here: Any = current
    for step in path:
        if isinstance(step, str) and isinstance(here, dict):
            here = cast("Document", here).get(step)
        elif isinstance(step, int) and isinstance(here, list) and step < len(cast("list[Any]", here)):
            here = cast("list[Any]", here)[step]
        else:
            return None
    return here
