"""The shoot must tolerate the seed's taints, with tolerations that its Project allows."""

from collections.abc import Sequence

from gardenbus.common.api.garden.feasibility import taint_problem
from gardenbus.scheduling.filters.context import FilterContext
from gardenbus.scheduling.filters.row import Filter, indexed
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.seed_index import SeedPart

NAME = "taints"
_READ = SeedPart(NAME, lambda seed: seed.seed.spec.taints)


def _reason(context: FilterContext, candidate: SeedCandidate) -> str:
    taints = candidate.seed.spec.taints
    detail = taint_problem(context.tolerations, taints)
    if detail and not taint_problem(context.constraints.tolerations, taints):
        detail += f": it would, but project {context.project} does not whitelist its tolerations"
    return detail


def _suggestion(context: FilterContext, seeds: str, rejected: Sequence[SeedCandidate]) -> str:
    detail = taint_problem(context.tolerations, rejected[0].seed.spec.taints)
    return f"{seeds} loses its taints, or the Project allows tolerations for them ({detail})"


TAINTS = Filter(
    NAME,
    removes="have taints that the shoot does not tolerate",
    unblocked_by=("seed", "project"),
    reason=_reason,
    narrow=indexed(NAME, _reason, lambda context: context.tolerations, _READ),
    suggestion=_suggestion,
)
