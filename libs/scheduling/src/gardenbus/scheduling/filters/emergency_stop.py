"""A seed whose reconciliations were stopped takes no new shoots; only the exact word `true` counts."""

from gardenbus.common.api.garden.seeds import EMERGENCY_STOP
from gardenbus.scheduling.filters.context import FilterContext
from gardenbus.scheduling.filters.row import Filter, indexed, lacking
from gardenbus.scheduling.seed_candidates import SeedCandidate

NAME = "emergency-stop"


def is_stopped(candidate: SeedCandidate) -> bool:
    """True when the reconciliations of the seed's shoots were stopped."""
    return candidate.seed.metadata.annotations.get(EMERGENCY_STOP) == "true"


def stopped_because(candidate: SeedCandidate) -> str:
    """The reason in words; "" when they were not stopped."""
    return "its shoots' reconciliations were stopped in an emergency" if is_stopped(candidate) else ""


def _reason(_context: FilterContext, candidate: SeedCandidate) -> str:
    return stopped_because(candidate)


EMERGENCY_STOPPED = Filter(
    NAME,
    removes="have their reconciliations stopped",
    unblocked_by=("seed",),
    reason=_reason,
    narrow=indexed(NAME, _reason, lambda _: ()),
    none_left=lambda _, seeds: lacking(seeds, "running reconciliations: they were stopped in an emergency"),
    suggestion=lambda _context, seeds, _: f"the annotation {EMERGENCY_STOP} is taken off {seeds}",
)
