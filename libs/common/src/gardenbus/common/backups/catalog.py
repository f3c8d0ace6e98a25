"""Names of backups, and the chains that they form: a full backup and the deltas that go on from it. Pure.

    20261123T032210Z-full-0-10482.jsonl.gz
    20261123T032710Z-delta-10482-10961-w12.jsonl.gz

That is when it was taken, the versions above which and up to which it has all, and how many requests waited, if any.
What is backed up besides the store has names of the same form, and its own versions and suffixes.

A delta of the store has all that changed between two versions, so it makes any state between them the one at its end:
it belongs to the latest chain that ends there, and two that were made at the same time are both of use. What has other
suffixes goes on from the backup that ends where it begins alone. Versions are never used twice, but for a store that
went back; so each file also has the opening of its store, which whoever reads a chain compares.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

STORE_SUFFIX = ".jsonl.gz"
_NAME = re.compile(r"(\d{8}T\d{6}Z)-(full|delta)-(\d{1,19})-(\d{1,19})(?:-w([1-9]\d{0,9}))?(\.[a-z]+\.gz)")
_STAMP = "%Y%m%dT%H%M%SZ"


class Backup(NamedTuple):
    """A backup by its name: all that was stored above `after`, as it was at `version`, and the requests that waited."""

    taken_at: datetime
    is_full: bool
    after: int
    version: int
    size: int = 0
    suffix: str = STORE_SUFFIX
    waiting: int = 0

    @property
    def name(self) -> str:
        """Its file's name."""
        kind = "full" if self.is_full else "delta"
        waiting = f"-w{self.waiting}" if self.waiting else ""
        return f"{self.taken_at.strftime(_STAMP)}-{kind}-{self.after}-{self.version}{waiting}{self.suffix}"


class Chain(NamedTuple):
    """A full backup and the deltas that go on from it, in order."""

    full: Backup
    deltas: tuple[Backup, ...] = ()

    @property
    def backups(self) -> tuple[Backup, ...]:
        """All of them."""
        return (self.full, *self.deltas)

    @property
    def last(self) -> Backup:
        """The latest of them."""
        return self.backups[-1]


class Catalog(NamedTuple):
    """All backups of a destination: chains, oldest first, and deltas that go on from none of them."""

    chains: tuple[Chain, ...]
    loose: tuple[Backup, ...]

    @property
    def backups(self) -> tuple[Backup, ...]:
        """All of them in the order of time."""
        return tuple(sorted([*(each for chain in self.chains for each in chain.backups), *self.loose], key=_in_time))


def backup_of(name: str, size: int = 0) -> Backup | None:
    """Read a file's name; None for one that is no backup's."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    stamp, kind, after, version, waiting, suffix = found.groups()
    try:
        taken_at = datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC)
    except ValueError:
        return None
    backup = Backup(taken_at, kind == "full", int(after), int(version), size, suffix, int(waiting or 0))
    return backup if backup.name == name else None


def catalog_of(backups: Iterable[Backup]) -> Catalog:
    """Join backups to chains."""
    chains: list[Chain] = []
    loose: list[Backup] = []
    for backup in sorted(backups, key=_in_time):
        if backup.is_full:
            chains.append(Chain(backup))
            continue
        at = next((i for i in reversed(range(len(chains))) if _goes_on(backup, chains[i].last)), None)
        if at is None:
            loose.append(backup)
        else:
            chains[at] = Chain(chains[at].full, (*chains[at].deltas, backup))
    return Catalog(tuple(chains), tuple(loose))


def _goes_on(delta: Backup, last: Backup) -> bool:
    if delta.suffix == STORE_SUFFIX:
        return delta.after <= last.version <= delta.version
    return delta.after == last.version


def chain_to(catalog: Catalog, name: str) -> Chain | None:
    """The chain that ends with a backup of this name, without what comes after it."""
    for chain in catalog.chains:
        for i, backup in enumerate(chain.backups):
            if backup.name == name:
                return Chain(chain.full, chain.deltas[:i])
    return None


def problems_of(catalog: Catalog) -> Sequence[str]:
    """Gaps: for each delta that goes on from no backup, the version that is missing."""
    return [
        f"{each.name} goes on from version {each.after}, and no backup here ends there: one is missing"
        for each in catalog.loose
    ]


def _in_time(backup: Backup) -> tuple[datetime, int, int]:
    return (backup.taken_at, backup.version, backup.after)
