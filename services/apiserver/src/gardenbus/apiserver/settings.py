"""Settings of the apiserver."""

from typing import Annotated

import msgspec

from gardenbus.common.runtime.settings import CommonSettings

Count = Annotated[int, msgspec.Meta(ge=1)]


class ApiserverSettings(CommonSettings, frozen=True, kw_only=True):
    """What the apiserver needs to know beyond the common settings."""

    request_batch: Count = 200
    """Durable requests fetched at once. Large enough that reads and acknowledgements are shared by many, small enough
    that a batch is through long before the 10 s after which the bus delivers it to somebody else."""

    report_batch: Count = 300
    """Reports fetched at once; they are smaller than requests, and those of one object become one write."""

    write_concurrency: Count = 200
    """Objects written at the same time by each intake. What is written in one turn of the loop is one call of the store
    (of up to 50): as many as a batch has, so that the store works on some while others are worked out."""

    answer_concurrency: Annotated[int, msgspec.Meta(ge=1, le=64)] = 12
    """Answered requests worked on at the same time; further ones wait their turn. Enough to hide the round trips, few
    enough that lists of large objects do not pile up in memory."""

    fetch_wait_seconds: Annotated[float, msgspec.Meta(gt=0, le=30)] = 1.0
    """How long a fetch waits for a first message; also how long a stop may wait for an idle intake."""

    deliveries_max: Count = 5
    """How often a message may come before it is put on `garden.rejected`: enough for a replica to be killed a few times
    for other reasons, few enough that a message that kills its handler does not take all replicas down for long."""
