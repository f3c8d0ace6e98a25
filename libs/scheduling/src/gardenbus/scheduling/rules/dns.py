"""A domain below some seed's default domain binds the shoot to the seeds that offer it."""

from collections.abc import Sequence

from gardenbus.scheduling.landscape import SeedCandidate
from gardenbus.scheduling.rules.filtering import Filtered, Inquiry, none_of
from gardenbus.scheduling.seed_index import SeedIndex


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
        is_managed = is_managed or _is_above(candidate, below)
        if inquiry.demand.domain_is_own and _offers(candidate, below, inquiry.project):
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


def narrow_domain(inquiry: Inquiry, index: SeedIndex, bits: int) -> int:
    """`keep_domain` on a set of an index."""
    below, project = inquiry.demand.domain_below, inquiry.project
    if below is None or not bits & index.those(("above", below), lambda seed: _is_above(seed, below)):
        return bits
    if not inquiry.demand.domain_is_own:
        return 0
    return bits & index.those(("offers", below, project), lambda seed: _offers(seed, below, project))


def _is_above(candidate: SeedCandidate, below: str) -> bool:
    return any(f".{below}".endswith(f".{default.domain}") for default in candidate.seed.spec.dns.defaults)


def _offers(candidate: SeedCandidate, below: str, project: str) -> bool:
    return any(below == f"{project}.{default.domain}" for default in candidate.seed.spec.dns.defaults)
