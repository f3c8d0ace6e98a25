"""Rules between shoots: affinity, anti-affinity and spread, by groups that are counted by seed.

A domain is what a topology key makes of a seed: the seed itself, its region, its provider, or the value of a label.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from gardenbus.common.api.garden.seeds import Seed

SHOOT_AFFINITY = "shoot-affinity"
SHOOT_ANTI_AFFINITY = "shoot-anti-affinity"
TOPOLOGY_SPREAD = "topology-spread"

_WHOLE = 100

SEED_KEY, REGION_KEY, PROVIDER_KEY = "seed", "region", "provider"
VERSION_FIELD = "#"


class GroupTerm(NamedTuple):
    """A group of the shoot's namespace, and the key of the domains that a rule about it means."""

    group: str
    topology_key: str


class SpreadConstraint(msgspec.Struct, frozen=True, omit_defaults=True):
    """A constraint on the members of a group by domain; the words are kube-scheduler's, but for `fullDomains`."""

    group: str
    topology_key: str
    max_skew: int = 1
    min_domains: int = 1
    ignores_full: bool = False


class PreferredGroupTerm(NamedTuple):
    """A term that is preferred, with a weight of 1 to 100."""

    weight: int
    term: GroupTerm


class GroupRules(msgspec.Struct, frozen=True, omit_defaults=True):
    """The groups that a shoot is a member of, the rules that it requires, and those that it prefers."""

    groups: tuple[str, ...] = ()
    affinity: tuple[GroupTerm, ...] = ()
    anti_affinity: tuple[GroupTerm, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    preferred_affinity: tuple[PreferredGroupTerm, ...] = ()
    preferred_anti_affinity: tuple[PreferredGroupTerm, ...] = ()
    preferred_spread: tuple[SpreadConstraint, ...] = ()

    def __bool__(self) -> bool:
        """False where a shoot neither is a member of a group nor has a rule."""
        return bool(self.groups or self.affinity or self.anti_affinity or self.spread or self.prefers)

    @property
    def prefers(self) -> bool:
        """True where a shoot prefers some seeds by the members of groups there."""
        return bool(self.preferred_affinity or self.preferred_anti_affinity or self.preferred_spread)

    @property
    def ignores_full(self) -> bool:
        """True where a domain that becomes full may let a shoot into another."""
        return any(each.ignores_full for each in self.spread)

    @property
    def read(self) -> tuple[str, ...]:
        """All groups whose counts a decision reads, in the order of names: preferences are not fenced."""
        preferred = (each.term.group for each in (*self.preferred_affinity, *self.preferred_anti_affinity))
        return tuple(sorted({*self.concerned, *preferred, *(each.group for each in self.preferred_spread)}))

    @property
    def concerned(self) -> tuple[str, ...]:
        """All groups that a decision is fenced by, in the order of names."""
        named = (each.group for each in (*self.affinity, *self.anti_affinity, *self.spread))
        return tuple(sorted({*self.groups, *named}))

    @property
    def keys(self) -> tuple[str, ...]:
        """The topology keys that a seed needs, in the order of names."""
        return tuple(sorted({each.topology_key for each in (*self.affinity, *self.anti_affinity, *self.spread)}))

    def kept_off(self, group: str) -> tuple[str, ...]:
        """The topology keys by which the shoot keeps members of a group off."""
        return tuple(sorted({each.topology_key for each in self.anti_affinity if each.group == group}))


NO_GROUP_RULES = GroupRules()


def group_lines(rules: GroupRules) -> tuple[str, ...]:
    """The index of a shoot's groups, as functions/groups.lua reads it."""
    return tuple(f"{each} {int(each in rules.groups)} {','.join(rules.kept_off(each))}" for each in rules.concerned)


class GroupCounts(msgspec.Struct, frozen=True):
    """A group at a version: members by seed, and by topology key the shoots by seed that keep members off."""

    version: int = 0
    members: Mapping[str, int] = {}
    keeping_off: Mapping[str, Mapping[str, int]] = {}

    @classmethod
    def of_fields(cls, fields: Mapping[str, int]) -> "GroupCounts":
        """Counts as the store keeps them."""
        members: dict[str, int] = {}
        keeping_off: dict[str, dict[str, int]] = {}
        for field, count in fields.items():
            key, _, seed = field.rpartition("!")
            if key:
                keeping_off.setdefault(key, {})[seed] = count
            elif field != VERSION_FIELD:
                members[seed] = count
        return cls(fields.get(VERSION_FIELD, 0), members, keeping_off)


NO_COUNTS = GroupCounts()


def moved_counts(counts: GroupCounts, rules: GroupRules, group: str, seed: str, change: int) -> GroupCounts:
    """Counts with a shoot more (or, `change` -1, one less) on a seed."""
    members = _moved(counts.members, seed, change) if group in rules.groups else counts.members
    keeping_off = dict(counts.keeping_off)
    for key in rules.kept_off(group):
        keeping_off[key] = _moved(keeping_off.get(key, {}), seed, change)
    return GroupCounts(counts.version, members, keeping_off)


def _moved(counts: Mapping[str, int], seed: str, change: int) -> dict[str, int]:
    moved = {**counts, seed: counts.get(seed, 0) + change}
    return {each: count for each, count in moved.items() if count > 0}


def without_shoot(
    counts: Mapping[str, GroupCounts], rules: GroupRules, seeds: Iterable[str]
) -> Mapping[str, GroupCounts]:
    """Counts by group without a shoot that counts on some seeds: it does not stand in its own way."""
    left = dict(counts)
    for seed in seeds:
        for group in rules.read:
            left[group] = moved_counts(left.get(group, NO_COUNTS), rules, group, seed, -1)
    return left


def domain_of(seed: Seed, key: str) -> str | None:
    """The domain of a seed; None where it has no label of this key. That of the key `seed` is the name."""
    provider = seed.spec.provider
    match key:
        case "seed":
            return seed.name
        case "region":
            return f"{provider.type}/{provider.region}"
        case "provider":
            return provider.type
        case _:
            value = seed.metadata.labels.get(key)
            return value if isinstance(value, str) else None


class GroupProblem(NamedTuple):
    """The rule that keeps a shoot off a seed, and why."""

    rule: str
    detail: str
    label: str = ""
    """The key of the label that the seed lacks, where that is why."""


Domain = Callable[[str, str], str | None]
"""Seed and topology key to domain; None for a seed that is not there, or has no such label."""


def spread_score(max_skew: int, members: int, least: int) -> int:
    """The score of a domain for one constraint, 0 to 100: of so many members, with the least of those compared."""
    return _WHOLE * max_skew // (max_skew + max(members - least, 0))


class _Spread(NamedTuple):
    """Members by domain, the least of the domains that count, and the first of those that have so few."""

    members: Mapping[str, int]
    least: int
    first: str


class GroupChecks:
    """The rules of one shoot on the counts of one moment.

    `counts` are those of its groups, without the shoot itself. `eligible` are the seeds that pass all other filters of
    its class: their domains are those that a spread compares; `open_seeds` are those of them that have room.
    """

    def __init__(
        self,
        rules: GroupRules,
        counts: Mapping[str, GroupCounts],
        domain: Domain,
        *,
        eligible: Sequence[str],
        open_seeds: Collection[str],
    ) -> None:
        self._rules = rules
        self._counts = counts
        self._domain = domain
        self._eligible = eligible
        self._open = open_seeds
        self._present = {each: self._domains(self._of(each.group).members, each) for each in rules.affinity}
        self._taken = {each: self._domains(self._of(each.group).members, each) for each in rules.anti_affinity}
        self._kept_off = [
            (GroupTerm(group, key), self._domains(seeds, GroupTerm(group, key)))
            for group in rules.groups
            for key, seeds in sorted(self._of(group).keeping_off.items())
        ]
        self._spreads = [(each, self._spread(each)) for each in rules.spread]

    def fewest(self) -> list[str]:
        """The domains that hold a spread up, as people are told them: those with the fewest members."""
        named = (named_domain(each.topology_key, spread.first) for each, spread in self._spreads if spread.first)
        return sorted(set(named))

    def problems(self, seed: str) -> Iterator[GroupProblem]:
        """The rules that keep the shoot off a seed, in the order in which they are told."""
        for term, present in self._present.items():
            yield from self._affinity_problems(seed, term, present)
        for term, taken in self._taken.items():
            domain = self._domain(seed, term.topology_key)
            if domain is None:
                yield GroupProblem(SHOOT_ANTI_AFFINITY, _without_label(term.topology_key), term.topology_key)
            elif domain in taken:
                yield GroupProblem(
                    SHOOT_ANTI_AFFINITY,
                    f"a member of group {term.group} is in {named_domain(term.topology_key, domain)}",
                )
        for term, keeping in self._kept_off:
            domain = self._domain(seed, term.topology_key)
            if domain is not None and domain in keeping:
                where = named_domain(term.topology_key, domain)
                yield GroupProblem(SHOOT_ANTI_AFFINITY, f"a shoot in {where} keeps members of group {term.group} off")
        for constraint, spread in self._spreads:
            yield from self._spread_problems(seed, constraint, spread)

    def _affinity_problems(self, seed: str, term: GroupTerm, present: Collection[str]) -> Iterator[GroupProblem]:
        domain = self._domain(seed, term.topology_key)
        if domain is None:
            yield GroupProblem(SHOOT_AFFINITY, _without_label(term.topology_key), term.topology_key)
        elif domain not in present and (present or term.group not in self._rules.groups):
            where = named_domain(term.topology_key, domain)
            yield GroupProblem(SHOOT_AFFINITY, f"no member of group {term.group} is in {where}")

    def _spread_problems(self, seed: str, constraint: SpreadConstraint, spread: _Spread) -> Iterator[GroupProblem]:
        key, group = constraint.topology_key, constraint.group
        domain = self._domain(seed, key)
        if domain is None:
            yield GroupProblem(TOPOLOGY_SPREAD, _without_label(key), key)
            return
        members = spread.members.get(domain, 0)
        if members + (group in self._rules.groups) - spread.least <= constraint.max_skew:
            return
        detail = f"{named_domain(key, domain)} has {members} members of group {group}"
        if spread.first:
            room = "" if self._has_room_in(spread.first, key) else " and no room"
            fewest = f"{named_domain(key, spread.first)} has the fewest members ({spread.least}){room}"
        else:
            fewest = f"fewer than {constraint.min_domains} domains count"
        yield GroupProblem(TOPOLOGY_SPREAD, f"{detail}: {fewest}")

    def _spread(self, constraint: SpreadConstraint) -> _Spread:
        key, counts = constraint.topology_key, self._of(constraint.group).members
        members: dict[str, int] = {}
        for seed, count in counts.items():
            domain = self._domain(seed, key)
            if domain is not None:
                members[domain] = members.get(domain, 0) + count
        among = (each for each in self._eligible if not constraint.ignores_full or each in self._open)
        domains = {domain for each in among if (domain := self._domain(each, key)) is not None}
        if len(domains) < max(constraint.min_domains, 1):
            return _Spread(members, 0, "")
        least = min(members.get(each, 0) for each in domains)
        return _Spread(members, least, min(each for each in domains if members.get(each, 0) == least))

    def _has_room_in(self, domain: str, key: str) -> bool:
        return any(self._domain(each, key) == domain for each in self._open)

    def _of(self, group: str) -> GroupCounts:
        return self._counts.get(group, NO_COUNTS)

    def _domains(self, seeds: Iterable[str], term: GroupTerm) -> frozenset[str]:
        found = (self._domain(seed, term.topology_key) for seed in seeds)
        return frozenset(each for each in found if each is not None)


def named_domain(key: str, domain: str) -> str:
    """A domain for people: `region aws/eu-1`, `rack=7`."""
    return f"{key} {domain}" if key in (SEED_KEY, REGION_KEY, PROVIDER_KEY) else f"{key}={domain}"


def _without_label(key: str) -> str:
    return f"the seed has no label {key}, by which the shoot states a rule"
