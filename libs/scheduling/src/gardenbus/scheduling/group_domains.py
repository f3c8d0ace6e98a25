"""Domains of a landscape as sets of seeds: what rules between shoots compare, without a step for each seed.

`GroupChecks` and `GroupScores` (common.api.garden.shoot_groups) say the same of one seed, with the reason.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from gardenbus.common.api.bitsets import Bitset
from gardenbus.common.api.garden.shoot_groups import (
    NO_COUNTS,
    PROVIDER_KEY,
    REGION_KEY,
    SEED_KEY,
    GroupCounts,
    GroupRules,
    SpreadConstraint,
    domain_of,
    spread_score,
)
from gardenbus.scheduling.seed_index import Grades
from gardenbus.scheduling.snapshot import Landscape


class _Domain(NamedTuple):
    """A domain with members of a group: how many, and its seeds."""

    members: int
    seeds: Bitset


class GroupDomains:
    """The groups of one shoot by domain. `counts` are those of one moment, without the shoot itself."""

    def __init__(self, rules: GroupRules, counts: Mapping[str, GroupCounts], landscape: Landscape) -> None:
        self._rules = rules
        self._counts = counts
        self._landscape = landscape

    def allowed(self, seeds: Bitset, *, eligible: Bitset, open_seeds: Bitset) -> Bitset:
        """Those of some seeds that all required rules let the shoot onto.

        `eligible` pass all other filters of its class: their domains are those that a spread compares; `open_seeds`
        have room.
        """
        rules = self._rules
        for term in rules.affinity:
            key, present = term.topology_key, self._domains_of(self._members(term.group), term.topology_key)
            is_first = not present and term.group in rules.groups
            seeds &= self._with_key(key) if is_first else self._seeds_of_all(present, key)
        for term in rules.anti_affinity:
            seeds &= self._with_key(term.topology_key) & ~self._near(self._members(term.group), term.topology_key)
        for group in rules.groups:
            for key, keeping in self._counts.get(group, NO_COUNTS).keeping_off.items():
                seeds &= ~self._near(keeping, key)
        for constraint in rules.spread:
            among = eligible & open_seeds if constraint.ignores_full else eligible
            seeds &= self._within_skew(constraint, among)
        return seeds

    def spread_grades(self, seeds: Bitset, open_seeds: Bitset) -> Grades:
        """Some seeds by ShootTopologySpread; the domains of `open_seeds` are compared."""
        constraints = self._rules.preferred_spread
        sums: dict[int, Bitset] = {0: seeds}
        for constraint in constraints:
            domains = self._domains(constraint)
            rest = self._with_key(constraint.topology_key)
            least = _least(domains, open_seeds & rest)
            graded: dict[int, Bitset] = {}
            for members, bits in domains.values():
                points = spread_score(constraint.max_skew, members, least)
                graded[points] = graded.get(points, 0) | bits
                rest &= ~bits
            points = spread_score(constraint.max_skew, 0, least)
            graded[points] = graded.get(points, 0) | rest
            sums = _added(sums, graded.items())
        return _scaled(sums, lambda total: total // len(constraints) if constraints else 0)

    def affinity_grades(self, seeds: Bitset) -> Grades:
        """Some seeds by InterShootAffinity."""
        rules = self._rules
        weight, sums = 0, dict[int, Bitset]({0: seeds})
        for terms, wants_member in ((rules.preferred_affinity, True), (rules.preferred_anti_affinity, False)):
            for each, term in terms:
                near = self._near(self._members(term.group), term.topology_key)
                held = near if wants_member else self._with_key(term.topology_key) & ~near
                sums = _added(sums, [(each, held)])
                weight += each
        return _scaled(sums, lambda total: total * 100 // weight if weight else 0)

    def _within_skew(self, constraint: SpreadConstraint, among: Bitset) -> Bitset:
        key, domains = constraint.topology_key, self._domains(constraint)
        counted = among & self._with_key(key)
        is_enough = constraint.min_domains <= 1 or self._domains_in(counted, key) >= constraint.min_domains
        least = _least(domains, counted) if is_enough else 0
        own = constraint.group in self._rules.groups
        seeds = self._with_key(key)
        for members, bits in domains.values():
            if members + own - least > constraint.max_skew:
                seeds &= ~bits
        return seeds

    def _domains_in(self, seeds: Bitset, key: str) -> int:
        if key == SEED_KEY:
            return seeds.bit_count()
        return sum(1 for each in self._all(key) if each & seeds)

    def _all(self, key: str) -> Iterable[Bitset]:
        index = self._landscape.index
        if key == REGION_KEY:
            return index.regions.values()
        if key == PROVIDER_KEY:
            return [self._seeds_of(kind, key) for kind in {kind for kind, _ in index.regions}]
        return index.labelled(key).values()

    def _domains(self, constraint: SpreadConstraint) -> Mapping[str, _Domain]:
        """The domains with members of a group."""
        key, members = constraint.topology_key, dict[str, int]()
        for seed, count in self._members(constraint.group).items():
            domain = self._landscape.domain(seed, key)
            if domain is not None:
                members[domain] = members.get(domain, 0) + count
        return {domain: _Domain(count, self._seeds_of(domain, key)) for domain, count in members.items()}

    def _near(self, seeds: Mapping[str, int], key: str) -> Bitset:
        """The seeds in the domain of any of some seeds."""
        return self._seeds_of_all(self._domains_of(seeds, key), key)

    def _domains_of(self, seeds: Iterable[str], key: str) -> frozenset[str]:
        found = (self._landscape.domain(seed, key) for seed in seeds)
        return frozenset(each for each in found if each is not None)

    def _seeds_of_all(self, domains: Iterable[str], key: str) -> Bitset:
        near = 0
        for domain in domains:
            near |= self._seeds_of(domain, key)
        return near

    def _seeds_of(self, domain: str, key: str) -> Bitset:
        index = self._landscape.index
        if key == SEED_KEY:
            slot = index.slots.get(domain)
            return 0 if slot is None else 1 << slot
        if key == REGION_KEY:
            kind, _, region = domain.partition("/")
            return index.regions.get((kind, region), 0)
        if key == PROVIDER_KEY:
            return sum(bits for (kind, _), bits in index.regions.items() if kind == domain)
        return index.labelled(key).get(domain, 0)

    def _with_key(self, key: str) -> Bitset:
        """The seeds that have a domain."""
        index = self._landscape.index
        if key in (SEED_KEY, REGION_KEY, PROVIDER_KEY):
            return index.present
        return index.matching(("topology-key", key), lambda seed: domain_of(seed.seed, key) is not None)

    def _members(self, group: str) -> Mapping[str, int]:
        return self._counts.get(group, NO_COUNTS).members


def _added(sums: Mapping[int, Bitset], graded: Iterable[tuple[int, Bitset]]) -> dict[int, Bitset]:
    """Seeds by their sums with the points of one more grade; those that it has not keep theirs."""
    grades = list(graded)
    added: dict[int, Bitset] = {}
    for total, seeds in sums.items():
        for points, bits in _with_rest(grades, seeds):
            added[total + points] = added.get(total + points, 0) | bits
    return added


def _with_rest(grades: Iterable[tuple[int, Bitset]], seeds: Bitset) -> Iterator[tuple[int, Bitset]]:
    for points, bits in grades:
        if both := seeds & bits:
            yield points, both
            seeds &= ~both
    if seeds:
        yield 0, seeds


def _least(domains: Mapping[str, _Domain], seeds: Bitset) -> int:
    """The fewest members of the domains that have one of some seeds, all of which are in a domain."""
    found = [each for each in domains.values() if each.seeds & seeds]
    for each in found:
        seeds &= ~each.seeds
    return 0 if seeds else min((each.members for each in found), default=0)


def _scaled(sums: Mapping[int, Bitset], points: Callable[[int], int]) -> Grades:
    grades: dict[int, Bitset] = {}
    for total, seeds in sums.items():
        grades[points(total)] = grades.get(points(total), 0) | seeds
    return grades
