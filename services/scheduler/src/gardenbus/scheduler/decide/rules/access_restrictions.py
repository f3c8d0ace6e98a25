"""The seed must support every access restriction that the shoot has."""

from collections.abc import Sequence

from gardenbus.scheduler.decide.landscape import SeedCandidate
from gardenbus.scheduler.decide.rules.filtering import Filtered, Inquiry, keep_where


def keep_supporting(inquiry: Inquiry, seeds: Sequence[SeedCandidate]) -> Filtered:
    """Keep seeds whose list holds each of the shoot's restrictions and is not shorter; options do not count."""
    wanted = inquiry.demand.access_restrictions
    if not wanted:
        return Filtered(seeds, {}, "")

    def problem(candidate: SeedCandidate) -> str:
        supported = [restriction.name for restriction in candidate.seed.spec.access_restrictions]
        missing = [name for name in wanted if name not in supported]
        if missing or len(wanted) > len(supported):
            return f"it does not support the access restrictions {', '.join(missing or wanted)}"
        return ""

    return keep_where(
        seeds, problem, f"none of the {len(seeds)} seeds supports the access restrictions {', '.join(wanted)}"
    )
