"""A seed is usable when it stays, wants to be seen and is ready."""

import re

from gardenbus.common.api.garden.seed_management import REMOVAL_ANNOTATION
from gardenbus.common.api.garden.seeds import unready_because
from gardenbus.scheduling.filters.context import FilterContext
from gardenbus.scheduling.filters.row import Filter, indexed
from gardenbus.scheduling.seed_candidates import SeedCandidate

NAME = "usable"


def unusable_because(candidate: SeedCandidate) -> str:
    """The reason why no shoot at all may be placed on a seed; "" when it is usable."""
    if candidate.unreadable:
        return f"its manifest cannot be read: {candidate.unreadable}"
    if candidate.seed.metadata.deletion_timestamp:
        return "it is being deleted"
    if owner := candidate.seed.metadata.annotations.get(REMOVAL_ANNOTATION):
        return f"it is marked for removal by {owner}"
    if not candidate.seed.spec.settings.scheduling.visible:
        return "it is cordoned (spec.settings.scheduling.visible is false)"
    if reason := unready_because(candidate.seed):
        return f"it is not ready: {reason}"
    return ""


def _state(reason: str) -> str:
    """The state of a seed in a word or two: `not ready`."""
    if reason.startswith("its manifest"):
        return "unreadable"
    return re.split(r": | \(| by ", reason.removeprefix("it is "), maxsplit=1)[0]


def _reason(_context: FilterContext, candidate: SeedCandidate) -> str:
    return unusable_because(candidate)


USABLE = Filter(
    NAME,
    removes="are being deleted, cordoned, or not ready",
    unblocked_by=("seed",),
    reason=_reason,
    narrow=indexed(NAME, _reason, lambda _: ()),
    none_left=lambda _, seeds: f"none of the {seeds} seeds is schedulable",
    state=_state,
    suggestion=lambda context, seeds, rejected: f"{seeds} becomes usable ({_reason(context, rejected[0])})",
)
