"""Confirmation of a deletion, without which Shoots, Projects and ShootStates stay.

Source: Gardener's admission plugin DeletionConfirmation.
"""

from gardenbus.common.api.document import Document, section

CONFIRMATION = "confirmation.gardener.cloud/deletion"
"""The annotation that confirms it, with the value "true"."""

CONFIRMING_PATCH: Document = {"metadata": {"annotations": {CONFIRMATION: "true"}}}
"""The merge patch that confirms it."""


def is_confirmed(document: Document) -> bool:
    """True when the deletion is confirmed."""
    return section(document, "metadata", "annotations").get(CONFIRMATION) == "true"
