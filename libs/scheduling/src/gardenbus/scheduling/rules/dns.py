"""A domain below some seed's default domain binds the shoot to the seeds that offer it."""

from collections.abc import Sequence

from gardenbus.scheduling.landscape import SeedCandidate
from gardenbus.scheduling.rules.filtering import Filtered, Inquiry, none_of


def keep_domain(inquiry: Inquiry, seeds: Sequence[SeedCandidate]) -> Filtered:
    """Keep seeds with a default domain D for which the shoot's domain is `<shoot>.<project>.D`.

    A domain that lies below no default domain of any seed is somebody's own and fits all.
    """
    below = inquiry.demand.domain_below
    if below is None:
        return Filtered(seeds, {}, "")
    rejected: dict[str, str] = {}
    kept: list[SeedCandidate] = []
    is_managed = False
    for candidate in seeds:
        defaults = [default.domain for default in candidate.seed.spec.dns.defaults]
        is_managed = is_managed or any(f".{below}".endswith(f".{domain}") for domain in defaults)
        if inquiry.demand.domain_is_own and any(below == f"{inquiry.project}.{domain}" for domain in defaults):
            kept.append(candidate)
        else:
            rejected[candidate.name] = "none of its default domains makes the shoot's domain"
    if not is_managed:
        return Filtered(seeds, {}, "")
    return Filtered(
        kept,
        rejected,
        f"{none_of(seeds)} offers a default domain for a shoot's domain below {below!r};"
        " it must read <shoot>.<project>.<default domain>",
    )
