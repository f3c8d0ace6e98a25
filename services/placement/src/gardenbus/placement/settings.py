"""The settings of the placement service, all from the environment."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec

from gardenbus.common.runtime.settings import CommonSettings, load

Seconds = Annotated[float, msgspec.Meta(ge=0, le=300)]
Workers = Annotated[int, msgspec.Meta(ge=1, le=200)]


class PlacementSettings(CommonSettings, frozen=True, kw_only=True):
    """What a placement process needs to know."""

    resource_collection_seconds: Seconds = 15.0
    """So long changes of what a placement selects are gathered before they make a new snapshot."""

    resource_interval_seconds: Seconds = 30.0
    """The snapshots of one placement's resources are at least so far apart."""

    scheduling_workers: Workers = 48
    """Placements that are scheduled at once."""

    workers: Workers = 16
    """Looks at once of each of the other sorts."""

    tick_seconds: Annotated[float, msgspec.Meta(ge=0.1, le=300)] = 5.0
    """How often it is asked whether a cluster's heartbeat has gone stale."""

    resync_seconds: Annotated[float, msgspec.Meta(ge=1)] = 1800.0
    """How often every placement is looked at, should anything have been lost."""


def load_settings(_: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> PlacementSettings:
    """Read the environment; raises SettingsInvalid with all problems."""
    return load(PlacementSettings, environ=environ)
