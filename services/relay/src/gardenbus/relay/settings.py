"""What can be set of a relay."""

from typing import Annotated

import msgspec

from gardenbus.common.runtime.settings import CommonSettings


class RelayServiceSettings(CommonSettings, frozen=True, kw_only=True):
    """Everything has a default."""

    relay_lead_ttl_seconds: float = 5.0
    """How long after the death of the leading relay another one takes over."""

    observe_seconds: Annotated[float, msgspec.Meta(ge=0.5)] = 10.0
    """How often outbox, streams and consumers are counted for `/metrics`: often enough for what scrapes every 15 s."""
