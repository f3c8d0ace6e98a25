"""Times at which a shoot's etcds are defragmented: once in each of its maintenance windows, never outside of one.

Source: Gardener's `determineDefragmentationSchedule` (`pkg/gardenlet/operation/botanist/etcd.go`), which draws a minute
of the window as well, though for most shoots on every third day only.
"""

from datetime import datetime

from gardenbus.common.api.garden.maintenance_windows import MaintenanceWindow
from gardenbus.common.backups.schedule import planned_at


def is_defragmentation_due(latest: datetime | None, now: datetime, window: MaintenanceWindow, identity: str) -> bool:
    """True from a minute of the open window on, which `identity` draws, unless `latest` was in this window already."""
    begin = window.opened_at(now)
    if begin is None or (latest is not None and latest >= begin):
        return False
    return planned_at(window, begin.date(), identity) <= now
