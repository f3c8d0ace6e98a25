"""Ownership of objects in a cluster, and whether a Work may have one that is there already.

Source: KubeFleet's `pkg/controllers/workapplier` (takeover of objects that were there before).
"""

from collections.abc import Collection

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.apply_strategies import ApplyStrategy
from gardenbus.memberagent.backend.kubernetes.inventory import AppliedWork, is_applied_work, owners_of
from gardenbus.memberagent.domain.differences import SPEC_HASH

APPLIED_LABEL = "kubernetes-fleet.io/applied-by"
"""Label of everything that was applied: watches select it."""

APPLIED_BY = "member-agent"


def belongs_to(live: Document, work: str) -> bool:
    """True for an object of a Work, also where its AppliedWork was made anew since."""
    return any(is_applied_work(owner) and owner.get("name") == work for owner in owners_of(live))


def works_of(live: Document) -> list[str]:
    """Works that an object belongs to."""
    return [str(owner.get("name")) for owner in owners_of(live) if is_applied_work(owner)]


def other_owners(live: Document, work: str) -> list[Document]:
    """Owners beside a Work."""
    return [owner for owner in owners_of(live) if not (is_applied_work(owner) and owner.get("name") == work)]


def takeover_problem(
    live: Document, applied: AppliedWork, strategy: ApplyStrategy, works: Collection[str]
) -> tuple[str, str] | None:
    """Reason and message why a Work may not take an object that was there before; None if it may.

    Works whose AppliedWork is gone have left their mark behind: they own nothing. `works` are those that have one.
    """
    owners = [
        owner
        for owner in other_owners(live, applied.name)
        if not is_applied_work(owner) or str(owner.get("name")) in works
    ]
    duplicate = next((owner for owner in owners if is_applied_work(owner)), None)
    if strategy.when_to_take_over == "Never":
        message = "it was there before, and is not taken over: whenToTakeOver is Never"
        return "NotTakenOver", message
    if duplicate is not None:
        return "FailedToTakeOver", f"it belongs to the Work {duplicate.get('name')} already"
    if owners and not strategy.allow_co_ownership:
        names = ", ".join(f"{owner.get('kind')} {owner.get('name')}" for owner in owners[:3])
        return "FailedToTakeOver", f"it belongs to {names}: allowCoOwnership would share it"
    return None


def deletion_problem(live: Document) -> str | None:
    """Message for an object that is being deleted, with what holds it; None for one that is not."""
    metadata = section(live, "metadata")
    if not metadata.get("deletionTimestamp"):
        return None
    held: list[str] = [*(metadata.get("finalizers") or []), *(section(live, "spec").get("finalizers") or [])]
    return f"it is being deleted since {metadata['deletionTimestamp']}" + (
        f", held by {', '.join(held)}" if held else ""
    )


def without_marks(live: Document, work: str) -> Document:
    """The merge patch by which an object no longer belongs to a Work, and keeps its fields.

    It holds for the version that was read. The label and the hash stay while another Work owns the object.
    """
    owners = other_owners(live, work)
    patch: Document = {"resourceVersion": section(live, "metadata").get("resourceVersion"), "ownerReferences": owners}
    if not any(is_applied_work(owner) for owner in owners):
        patch |= {"labels": {APPLIED_LABEL: None}, "annotations": {SPEC_HASH: None}}
    return {"metadata": patch}
