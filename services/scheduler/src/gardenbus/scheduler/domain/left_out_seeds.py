"""Seeds that the store does not let a shoot onto, whatever the filters say: left out of its decision, by rule. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping

from gardenbus.scheduling.results import FunnelStep, SchedulingResult, SeedRejection, Unschedulable, format_rejections

CIRCULAR = "circular"
"""The rule of the store against seeds that the shoot hosts itself, directly or through others."""

SILENT = "recovery"
"""The rule of the store against seeds that have not responded to its recovery."""

_DETAILS = {
    CIRCULAR: "it is hosted by this very shoot",
    SILENT: "it has not reported yet what it runs since the store was restored",
}

LeftOut = Mapping[str, str]
"""Seeds with the rule by which each is left out."""


def left_out_by(rule: str, seeds: Iterable[str]) -> LeftOut:
    """Seeds that one rule leaves out."""
    return dict.fromkeys(seeds, rule)


def with_left_out(left_out: LeftOut, result: SchedulingResult) -> SchedulingResult:
    """The same result; if unschedulable, its message names the seeds that were left out."""
    if not isinstance(result, Unschedulable) or not left_out:
        return result
    against = left_out_rejections(left_out)
    rejected = {**result.rejected, **Counter(left_out.values())}
    return Unschedulable(result.rule, f"{result.message}; left out: {format_rejections(against)}", rejected)


def left_out_rejections(left_out: LeftOut) -> tuple[SeedRejection, ...]:
    """The rejections of the seeds that are left out."""
    return tuple(SeedRejection(seed, rule, _DETAILS[rule]) for seed, rule in sorted(left_out.items()))


def left_out_steps(left_out: LeftOut, left: int) -> tuple[FunnelStep, ...]:
    """The same as steps of a funnel that ends with `left` seeds."""
    steps: list[FunnelStep] = []
    for rule, count in sorted(Counter(left_out.values()).items(), reverse=True):
        steps.insert(0, FunnelStep(rule, count, left + sum(each.rejected for each in steps)))
    return tuple(steps)
