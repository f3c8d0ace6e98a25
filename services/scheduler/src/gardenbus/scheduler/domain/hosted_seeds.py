"""Rejection of the seeds that a shoot hosts itself, directly or through others."""

from gardenbus.scheduling.results import SchedulingResult, SeedRejection, Unschedulable, format_rejections

CIRCULAR = "circular"
"""The rule of the store against seeds that the shoot hosts itself."""


def with_hosted_rejections(hosted: frozenset[str], result: SchedulingResult) -> SchedulingResult:
    """The same result; if unschedulable, its message names the seeds that were left out."""
    if not isinstance(result, Unschedulable):
        return result
    against = hosted_rejections(hosted)
    rejected = {**result.rejected, CIRCULAR: len(against)}
    return Unschedulable(result.rule, f"{result.message}; left out: {format_rejections(against)}", rejected)


def hosted_rejections(hosted: frozenset[str]) -> tuple[SeedRejection, ...]:
    """The rejections of the seeds that a shoot hosts."""
    return tuple(SeedRejection(seed, CIRCULAR, "it is hosted by this very shoot") for seed in sorted(hosted))
