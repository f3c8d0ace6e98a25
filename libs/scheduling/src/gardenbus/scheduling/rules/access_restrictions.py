"""The seed must support every access restriction that the shoot has."""

from collections.abc import Sequence

from gardenbus.common.resources.fitting import restriction_problem
from gardenbus.scheduling.landscape import SeedCandidate
from gardenbus.scheduling.rules.filtering import Filtered, Inquiry, keep_where, none_of


def keep_supporting(inquiry: Inquiry, seeds: Sequence[SeedCandidate]) -> Filtered:
    """Keep seeds whose list holds each of the shoot's restrictions and is not shorter; options do not count."""
    wanted = inquiry.demand.access_restrictions
    if not wanted:
        return Filtered(seeds, {}, "")

    return keep_where(
        seeds,
        lambda candidate: restriction_problem(wanted, candidate.seed.spec.access_restrictions),
        f"{none_of(seeds)} supports the access restrictions {', '.join(wanted)}",
    )
