"""A seed is usable when it stays, wants to be seen and is ready."""

from collections.abc import Sequence

from gardenbus.common.resources.seed_management import MARKED_FOR_REMOVAL
from gardenbus.common.resources.seeds import unready_because
from gardenbus.scheduling.landscape import SeedCandidate
from gardenbus.scheduling.rules.filtering import Filtered, Inquiry, keep_where


def keep_usable(_inquiry: Inquiry, seeds: Sequence[SeedCandidate]) -> Filtered:
    """Keep seeds that are not being deleted nor marked for removal, visible to the scheduler, and ready."""
    sentence = f"none of the {len(seeds)} seeds can be scheduled to (not being deleted, visible, ready)"
    return keep_where(seeds, unusable_because, sentence)


def unusable_because(candidate: SeedCandidate) -> str:
    """Why no shoot at all may be placed on a seed; "" when it is usable."""
    if candidate.unreadable:
        return f"its manifest cannot be read: {candidate.unreadable}"
    if candidate.seed.metadata.deletion_timestamp:
        return "it is being deleted"
    if mark := candidate.seed.metadata.annotations.get(MARKED_FOR_REMOVAL):
        return f"it is marked for removal by {mark}"
    if not candidate.seed.spec.settings.scheduling.visible:
        return "it is hidden from the scheduler (spec.settings.scheduling.visible is false)"
    if reason := unready_because(candidate.seed):
        return f"it is not ready: {reason}"
    return ""
