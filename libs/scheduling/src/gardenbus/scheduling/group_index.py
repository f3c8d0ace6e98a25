"""Counts of groups as they were read, with the shoots that decisions have placed since."""

from collections import Counter
from collections.abc import Iterable, Mapping

from gardenbus.common.api.garden.shoot_groups import NO_COUNTS, NO_GROUP_RULES, GroupCounts, GroupRules, moved_counts
from gardenbus.common.ports.store import Store

GroupKey = tuple[str, str]
"""Namespace and name of a group."""


class GroupIndex:
    """Groups by namespace and name. One that was not read has no members, and version 0."""

    def __init__(self, counts: Mapping[GroupKey, GroupCounts] | None = None) -> None:
        self._counts = dict(counts or {})
        self._assumed: Counter[GroupKey] = Counter()

    def copy(self) -> "GroupIndex":
        """The same counts, to be changed apart."""
        same = GroupIndex(self._counts)
        same._assumed.update(self._assumed)
        return same

    def of(self, namespace: str, rules: GroupRules) -> Mapping[str, GroupCounts]:
        """The counts that a shoot's rules read, by name."""
        return {group: self._counts.get((namespace, group), NO_COUNTS) for group in rules.read}

    def seen(self, namespace: str, rules: GroupRules) -> Mapping[str, tuple[int, int]]:
        """Groups that a decision on a shoot is based on (`ports.store.SeenGroups`)."""
        return {
            group: (counts.version, self._assumed[namespace, group])
            for group, counts in self.of(namespace, rules).items()
            if group in rules.concerned
        }

    def assume(self, namespace: str, rules: GroupRules, seed: str) -> None:
        """Count one more shoot on a seed in its groups."""
        if rules is NO_GROUP_RULES:  # as most are: nothing is worked out for them
            return
        self._move(namespace, rules, seed, 1)
        self._assumed.update(
            (namespace, each) for each in rules.concerned if each in rules.groups or rules.kept_off(each)
        )

    def take_away(self, namespace: str, rules: GroupRules, seed: str) -> None:
        """Count a shoot on a seed no longer: it leaves, or it must not stand in its own way."""
        self._move(namespace, rules, seed, -1)

    def _move(self, namespace: str, rules: GroupRules, seed: str, change: int) -> None:
        if rules is NO_GROUP_RULES:
            return
        for group in rules.concerned:
            key = (namespace, group)
            self._counts[key] = moved_counts(self._counts.get(key, NO_COUNTS), rules, group, seed, change)


async def read_groups(store: Store, shoots: Iterable[tuple[str, GroupRules]]) -> GroupIndex:
    """Read the groups that shoots, each given by its namespace and rules, are about. Raises Unavailable."""
    wanted: dict[str, set[str]] = {}
    for namespace, rules in shoots:
        if rules:
            wanted.setdefault(namespace, set()).update(rules.read)
    counts: dict[GroupKey, GroupCounts] = {}
    for namespace, names in wanted.items():
        found = await store.group_counts(namespace, sorted(names))
        counts |= {(namespace, group): each for group, each in found.items()}
    return GroupIndex(counts)
