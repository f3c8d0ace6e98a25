"""Rules between shoots: affinity, anti-affinity and spread of the groups that a shoot names, and is a member of."""

from collections.abc import Sequence

from gardenbus.common.api.garden.shoot_groups import SHOOT_AFFINITY, SHOOT_ANTI_AFFINITY, TOPOLOGY_SPREAD
from gardenbus.scheduling.filters.context import FilterContext
from gardenbus.scheduling.filters.row import Filter, Reason, Suggestion
from gardenbus.scheduling.seed_candidates import SeedCandidate


def _reason_of(rule: str) -> Reason:
    def reason(context: FilterContext, candidate: SeedCandidate) -> str:
        problems = context.groups.problems(candidate.name) if context.groups is not None else ()
        return next((each.detail for each in problems if each.rule == rule), "")

    return reason


def _row(rule: str, removes: str, suggestion: Suggestion) -> Filter:
    return Filter(
        rule,
        removes=removes,
        unblocked_by=("seed", "usage"),
        reason=_reason_of(rule),
        suggestion=_or_label(rule, suggestion),
    )


def _or_label(rule: str, otherwise: Suggestion) -> Suggestion:
    """The label that seeds need where its absence alone keeps a shoot off all of them; else another suggestion."""

    def suggestion(context: FilterContext, seeds: str, rejected: Sequence[SeedCandidate]) -> str:
        groups = context.groups
        problems = (next(groups.problems(each.name), None) for each in rejected) if groups is not None else ()
        labels = {each.label if each is not None and each.rule == rule else "" for each in problems}
        if labels and "" not in labels:
            return f"{seeds} gets the label {' and '.join(sorted(labels))}"
        return otherwise(context, seeds, rejected)

    return suggestion


def _spread_suggestion(context: FilterContext, seeds: str, _rejected: Sequence[SeedCandidate]) -> str:
    fewest = context.groups.fewest() if context.groups is not None else []
    where = " and ".join(fewest) or "another domain"
    return f"a seed with room is added in {where}, or the constraint that closes {seeds} has fullDomains: Ignore"


SHOOT_AFFINITY_ROW = _row(
    SHOOT_AFFINITY,
    "have no member of a group near that the shoot requires",
    lambda _context, seeds, _: f"a member of the group comes near {seeds}, or the shoot gives the rule up",
)
SHOOT_ANTI_AFFINITY_ROW = _row(
    SHOOT_ANTI_AFFINITY,
    "have a shoot near that this one keeps off, or that keeps this one off",
    lambda _context, seeds, _: f"the other shoot leaves {seeds}, or who has the rule gives it up",
)
TOPOLOGY_SPREAD_ROW = _row(
    TOPOLOGY_SPREAD,
    "lie where a group would have too many members more than elsewhere",
    _spread_suggestion,
)
