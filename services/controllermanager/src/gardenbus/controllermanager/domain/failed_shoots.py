"""Shoots whose last operation has failed for good, for several loops."""

from gardenbus.common.api.document import Document, section


def has_failed(shoot: Document) -> bool:
    """True when the last operation failed, and nothing was requested since.

    Source: Gardener's `IsShootFailedAndUpToDate`.
    """
    status = section(shoot, "status")
    is_up_to_date = status.get("observedGeneration") == section(shoot, "metadata").get("generation")
    return section(status, "lastOperation").get("state") == "Failed" and is_up_to_date
