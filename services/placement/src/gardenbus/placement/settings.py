"""Settings of the placement service, all from the environment."""

from typing import Annotated

import msgspec

from gardenbus.common.runtime.settings import CommonSettings

CollectionSeconds = Annotated[float, msgspec.Meta(ge=0, le=300)]
Workers = Annotated[int, msgspec.Meta(ge=1, le=200)]


class PlacementSettings(CommonSettings, frozen=True, kw_only=True):
    """Settings of a placement process."""

    resource_collection_seconds: CollectionSeconds = 15.0
    """Period in which changes of selected resources are gathered before they make a new snapshot."""

    resource_interval_seconds: CollectionSeconds = 30.0
    """Minimum interval between resource snapshots of one placement."""

    scheduling_workers: Workers = 48
    """Placements scheduled concurrently."""

    workers: Workers = 16
    """Concurrent reconciles of each other controller."""

    tick_seconds: Annotated[float, msgspec.Meta(ge=0.1, le=300)] = 5.0
    """Interval of the checks for stale heartbeats."""

    resync_seconds: Annotated[float, msgspec.Meta(ge=1)] = 1800.0
    """Interval of full resyncs, should an event have been lost."""
