"""Settings of the relay."""

from typing import Annotated

import msgspec

from gardenbus.common.runtime.settings import CommonSettings


class RelayServiceSettings(CommonSettings, frozen=True, kw_only=True):
    """Everything has a default."""

    relay_lead_ttl_seconds: float = 5.0
    """Time after the death of the leading relay until another one takes over."""

    observe_seconds: Annotated[float, msgspec.Meta(ge=0.5)] = 10.0
    """Interval at which outbox, streams and consumers are counted for `/metrics`: enough for scrapes every 15 s."""
