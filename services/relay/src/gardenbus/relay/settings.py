"""Settings of the relay."""

from typing import Annotated

import msgspec

from gardenbus.common.runtime.settings import CommonSettings

Window = Annotated[str, msgspec.Meta(pattern=r"^\d{6}[+-]\d{4}/\d{6}[+-]\d{4}$")]


class RelayServiceSettings(CommonSettings, frozen=True, kw_only=True):
    """Everything has a default."""

    relay_lead_ttl_seconds: float = 5.0
    """Time after the death of the leading relay until another one takes over."""

    recovery_seconds: Annotated[float, msgspec.Meta(ge=1)] = 40.0
    """Shortest time that a restored or rebuilt store waits for its seeds: lifecycle's monitor period."""

    backup_destination: str = ""
    """Place of the leading relay's backups: a directory, s3://BUCKET/folder, nats://host:4222/BUCKET; empty: none."""

    backup_window: Window = "220000+0000/230000+0000"
    """Window for the daily full backup, at a minute that is drawn for each day; two times as Shoots write theirs."""

    backup_delta_seconds: Annotated[float, msgspec.Meta(ge=1)] = 300.0
    """Interval of backups of what has changed; nothing is written where nothing has."""

    backup_delta_mebibytes: Annotated[float, msgspec.Meta(gt=0)] = 100.0
    """Estimated size of what has changed at which it is backed up before its time."""

    backup_collection_seconds: Annotated[float, msgspec.Meta(ge=1)] = 43_200.0
    """Interval at which backups that are not kept any more are removed."""

    observe_seconds: Annotated[float, msgspec.Meta(ge=0.5)] = 10.0
    """Interval at which outbox, streams and consumers are counted for `/metrics`: enough for scrapes every 15 s."""
