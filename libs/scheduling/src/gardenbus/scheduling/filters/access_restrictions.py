"""The seed must support every access restriction that the shoot has; options do not count."""

from gardenbus.common.api.garden.feasibility import restriction_problem
from gardenbus.scheduling.filters.context import FilterContext
from gardenbus.scheduling.filters.row import Filter, indexed, lacking
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.seed_index import SeedPart

NAME = "access-restrictions"
_READ = SeedPart(NAME, lambda seed: seed.seed.spec.access_restrictions)


def _reason(context: FilterContext, candidate: SeedCandidate) -> str:
    return restriction_problem(context.constraints.access_restrictions, candidate.seed.spec.access_restrictions)


ACCESS_RESTRICTIONS = Filter(
    NAME,
    removes="do not support what the shoot demands",
    unblocked_by=("seed",),
    reason=_reason,
    narrow=indexed(NAME, _reason, lambda context: context.constraints.access_restrictions, _READ),
    none_left=lambda context, seeds: lacking(
        seeds, f"support for the access restrictions {', '.join(context.constraints.access_restrictions)}"
    ),
    suggestion=lambda context, seeds, rejected: (
        f"{seeds} comes to support what is restricted ({_reason(context, rejected[0])})"
    ),
)
