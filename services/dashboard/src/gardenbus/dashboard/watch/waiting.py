"""Cache of the unschedulable shoots, grouped by cause."""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gardenbus.common.api.garden.rows import ShootRow
from gardenbus.common.api.garden.unschedulable import brief_reason, cause_of
from gardenbus.common.api.keys import ObjectKey

LONGEST_CAUSE = 300
SORTED_AT_MOST = 2_000
"""Rows from the start of a group up to which only the first ones are sorted."""


class WaitingShoot(NamedTuple):
    """One unschedulable shoot; in order, the one that was created first comes first."""

    created: str
    namespace: str
    name: str
    scheduler: str
    brief: str
    """The CLI's short words for its reason."""


class WaitingGroup(NamedTuple):
    """Shoots that wait for the same cause: how many, and the creation time of the first."""

    cause: str
    shoots: int
    oldest: str


class WaitingPage(NamedTuple):
    """One page of the shoots of a group, and how many there are."""

    shoots: Sequence[WaitingShoot]
    total: int


class WaitingCache:
    """Unschedulable shoots by cause; `changed` is to be called with each shoot that came, went or changed."""

    def __init__(self) -> None:
        self._groups: defaultdict[str, dict[ObjectKey, WaitingShoot]] = defaultdict(dict)
        self._causes: dict[ObjectKey, str] = {}

    def changed(self, key: ObjectKey, row: ShootRow | None) -> None:
        """Update after a change; `row` has the whole message as its description."""
        if row is None or not row.is_unschedulable:
            self._leave(key)
            return
        cause, brief = texts_of(row.description)
        self.put(key, (cause, WaitingShoot(row.created, row.namespace, row.name, row.scheduler, brief)))

    def entry(self, key: ObjectKey) -> tuple[str, WaitingShoot] | None:
        """Return the cause for which a shoot waits, and what is shown of it."""
        cause = self._causes.get(key)
        return None if cause is None else (cause, self._groups[cause][key])

    def put(self, key: ObjectKey, entry: tuple[str, WaitingShoot] | None) -> None:
        """Store what another cache has of a shoot."""
        if entry is None or self._causes.get(key) != entry[0]:
            self._leave(key)
        if entry is not None:
            cause, shown = entry
            self._causes[key] = cause
            self._groups[cause][key] = shown

    def keys(self) -> Iterable[ObjectKey]:
        """Return the keys of all that wait."""
        return self._causes.keys()

    def groups(self, words: Sequence[str] = ()) -> list[WaitingGroup]:
        """Return the groups with shoots that match all words, the largest first."""
        found = [_group(cause, _matching(cause, shoots.values(), words)) for cause, shoots in self._groups.items()]
        return sorted((group for group in found if group.shoots), key=lambda group: (-group.shoots, group.cause))

    def page(self, cause: str, words: Sequence[str], *, offset: int, limit: int) -> WaitingPage:
        """Return a page of the shoots of a cause that match all words, the longest waiting first."""
        found = list(_matching(cause, self._groups.get(cause, {}).values(), words))
        last = offset + limit
        first = heapq.nsmallest(last, found) if last <= SORTED_AT_MOST else sorted(found)[:last]
        return WaitingPage(first[offset:], len(found))

    def _leave(self, key: ObjectKey) -> None:
        cause = self._causes.pop(key, None)
        if cause is not None:
            self._groups[cause].pop(key, None)
            if not self._groups[cause]:
                del self._groups[cause]


def texts_of(message: str) -> tuple[str, str]:
    """Return the cause and the short words of a scheduler's message."""
    return cause_of(message)[:LONGEST_CAUSE], brief_reason(message)[:LONGEST_CAUSE]


def _group(cause: str, shoots: Iterable[WaitingShoot]) -> WaitingGroup:
    created = [shoot.created for shoot in shoots]
    return WaitingGroup(cause, len(created), min(created, default=""))


def _matching(cause: str, shoots: Iterable[WaitingShoot], words: Sequence[str]) -> Iterable[WaitingShoot]:
    """Yield the shoots in whose name, namespace, scheduler or cause each word is found."""
    left = [word for word in words if word not in cause.lower()]
    if not left:
        return shoots
    return (
        shoot
        for shoot in shoots
        if all(word in f"{shoot.namespace}/{shoot.name} {shoot.scheduler}".lower() for word in left)
    )
