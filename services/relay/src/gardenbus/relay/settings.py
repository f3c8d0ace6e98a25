"""What can be set of a relay."""

from gardenbus.common.runtime.settings import CommonSettings


class RelayServiceSettings(CommonSettings, frozen=True, kw_only=True):
    """Everything has a default."""

    relay_lead_ttl_seconds: float = 5.0
    """How long after the death of the leading relay another one takes over."""
