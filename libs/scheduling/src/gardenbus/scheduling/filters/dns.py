"""A domain below some seed's default domain binds the shoot to the seeds that offer it.

A seed offers it with a default domain D for which the shoot's domain is `<shoot>.<project>.D`. A domain that lies below
no default domain of any seed is somebody's own and fits all.
"""

from gardenbus.common.api.bitsets import Bitset
from gardenbus.scheduling.filters.context import FilterContext
from gardenbus.scheduling.filters.row import Filter, lacking
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.seed_index import SeedIndex

_REASON = "none of its default domains makes the shoot's domain"


def _narrow(context: FilterContext, index: SeedIndex, bits: Bitset) -> Bitset:
    below, project = context.constraints.domain_below, context.project
    if below is None or not bits & index.matching(("above", below), lambda seed: _is_above(seed, below)):
        return bits
    if not context.constraints.domain_is_own:
        return 0
    return bits & index.matching(("offers", below, project), lambda seed: _offers(seed, below, project))


def _is_above(candidate: SeedCandidate, below: str) -> bool:
    return any(f".{below}".endswith(f".{default.domain}") for default in candidate.seed.spec.dns.defaults)


def _offers(candidate: SeedCandidate, below: str, project: str) -> bool:
    return any(below == f"{project}.{default.domain}" for default in candidate.seed.spec.dns.defaults)


DNS_DOMAIN = Filter(
    "dns-domain",
    removes="cannot give the shoot a name below a domain of theirs",
    unblocked_by=("seed", "project"),
    reason=lambda _context, _seed: _REASON,
    narrow=_narrow,
    none_left=lambda context, seeds: (
        lacking(seeds, f"a default domain for a shoot's domain below {context.constraints.domain_below!r}")
        + "; it must read <shoot>.<project>.<default domain>"
    ),
    suggestion=lambda _context, seeds, _: f"{seeds} offers a default domain for the shoot's ({_REASON})",
)
