"""Distant shoots: placed farther away than a ready seed with room would be.

A shoot that is scheduled while its nearest seeds are not ready, or full, stays where it is: nothing moves it by itself.
If its DNS domain is made of a default domain of its seed, the filter `dns-domain` keeps it there even when a nearer one
is ready again.
"""

import msgspec

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.shoots import Shoot
from gardenbus.scheduling.assignment import decide
from gardenbus.scheduling.descheduling.relocation import AlternativesCache, migration_request
from gardenbus.scheduling.equivalence_classes import Constraints, SchedulingRequest
from gardenbus.scheduling.results import Assignment
from gardenbus.scheduling.scores.strategies import ranking_of
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.snapshot import Snapshot


class NearerSeed(msgspec.Struct, frozen=True, rename="camel"):
    """The seed that a placed shoot would be nearer on, and both distances.

    `is_kept_by_domain` is True where its DNS domain alone, made of its own seed's default domain, keeps it off.
    """

    seed: str
    distance: int
    own_distance: int
    is_kept_by_domain: bool = msgspec.field(default=False, name="keptByDomain")


class NearerSeeds:
    """Nearer seeds of the placed shoots of a snapshot, each worked out once for shoots that are alike."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._landscapes = AlternativesCache(snapshot.landscape)
        self._found: dict[tuple[SchedulingRequest, str, frozenset[str]], NearerSeed | None] = {}

    def of(self, shoot: Shoot, document: Document, barred: frozenset[str] = frozenset()) -> NearerSeed | None:
        """The nearest seed with room, where it is nearer than the shoot's own; None where none is.

        Seeds in `barred` do not count. Only the strategy MinimalDistance measures distances; with others it is None.
        """
        home = self._snapshot.landscape.seeds_by_name.get(shoot.spec.seed_name)
        if home is None:
            return None
        request = migration_request(shoot, document, self._snapshot.landscape)
        key = (request, home.name, barred)
        if key not in self._found:
            landscape = self._landscapes.without(barred) if barred else self._snapshot.landscape
            self._found[key] = _nearer_by_rules(request, home, Snapshot(landscape, self._snapshot.usage))
        return self._found[key]


def _nearer_by_rules(request: SchedulingRequest, home: SeedCandidate, snapshot: Snapshot) -> NearerSeed | None:
    found = _nearer(request, home, snapshot)
    if found is not None or not _has_domain_of(request.constraints, home):
        return found
    free = msgspec.structs.replace(request.constraints, domain_below=None, domain_is_own=False)
    found = _nearer(msgspec.structs.replace(request, constraints=free), home, snapshot)
    return found and msgspec.structs.replace(found, is_kept_by_domain=True)


def _nearer(request: SchedulingRequest, home: SeedCandidate, snapshot: Snapshot) -> NearerSeed | None:
    ranking = ranking_of(request.constraints, snapshot.landscape)
    own = ranking.rank(home.seed.spec.provider.type, home.seed.spec.provider.region)
    outcome = decide(request, snapshot) if ranking.has_distances else None
    if not isinstance(outcome, Assignment) or isinstance(own, str):
        return None
    provider = snapshot.landscape.seeds_by_name[outcome.seed].seed.spec.provider
    rank = ranking.rank(provider.type, provider.region)
    if isinstance(rank, str) or rank >= own:
        return None
    return NearerSeed(outcome.seed, rank[1], own[1])


def _has_domain_of(constraints: Constraints, home: SeedCandidate) -> bool:
    below = constraints.domain_below
    return below is not None and any(f".{below}".endswith(f".{each.domain}") for each in home.seed.spec.dns.defaults)
