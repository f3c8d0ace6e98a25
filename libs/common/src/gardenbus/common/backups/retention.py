"""Retention of backups, as Gardener's etcd-backup-restore does by its exponential policy. Pure.

Of full backups, by the clock of UTC:

    | taken                                | kept                                        |
    |--------------------------------------|---------------------------------------------|
    | within the last hour                 | all, with their deltas                      |
    | today                                | the latest of each hour                     |
    | on one of the seven days before      | the latest of each day                      |
    | in one of the four weeks before      | the latest of each week (of seven days)     |
    | earlier                              | none                                        |

The latest chain is kept whole, however old it is; of all other chains only the full backup is, unless one of its
backups is of the last hour. A delta that goes on from nothing is kept for that hour only.
"""

from collections.abc import Hashable
from datetime import datetime, time, timedelta

from gardenbus.common.backups.catalog import Backup, Catalog

_RECENT = timedelta(hours=1)
_DAILY, _WEEKLY = 7, 4


def kept(catalog: Catalog, now: datetime) -> frozenset[Backup]:
    """The backups that are kept; `now` in UTC."""
    stay: set[Backup] = {each for each in catalog.loose if _is_recent(each, now)}
    latest: dict[Hashable, Backup] = {}
    for chain in catalog.chains:
        if any(_is_recent(each, now) for each in chain.backups):
            stay.update(chain.backups)
        if (bucket := _bucket(chain.full.taken_at, now)) is not None:
            latest[bucket] = chain.full
    stay.update(latest.values())
    if catalog.chains:
        stay.update(catalog.chains[-1].backups)
    return frozenset(stay)


def _is_recent(backup: Backup, now: datetime) -> bool:
    return now - backup.taken_at < _RECENT


def _bucket(taken_at: datetime, now: datetime) -> Hashable | None:
    """Span of time of which one backup is kept; None where none is. A clock that is ahead makes it one of today."""
    end_of_today = datetime.combine(now.date(), time(), now.tzinfo) + timedelta(days=1)
    days = max(0, (end_of_today - taken_at - timedelta(microseconds=1)).days)
    if days == 0:
        return ("hour", taken_at.date(), taken_at.hour)
    if days <= _DAILY:
        return ("day", days)
    week = (days - _DAILY - 1) // 7
    return ("week", week) if week < _WEEKLY else None
