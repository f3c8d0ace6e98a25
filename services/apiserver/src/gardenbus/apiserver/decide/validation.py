"""Whether a manifest keeps the rules of its kind."""

from gardenbus.common.resources.document import Document


def validate(document: Document, old: Document | None) -> None:
    """Raise InvalidResource with every field problem, Unsupported for an Event."""
    _ = document, old
