"""Grace period before a wait is reported in the Shoot's status: it normally ends soon."""

from collections.abc import Hashable

from gardenbus.common.ports.clock import Clock
from gardenbus.gardenlet.domain.shoot_record import ShootName

GRACE_PERIOD_SECONDS = 1.0
"""Longer waits are reported."""


class GracePeriods:
    """Grace periods by shoot. `about` identifies the wait: another one starts anew."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: dict[ShootName, tuple[Hashable, float]] = {}

    def left(self, shoot: ShootName, about: Hashable) -> float:
        """Seconds left of the grace period; 0 or less when it is over."""
        now = self._clock.monotonic()
        before, since = self._since.get(shoot, (None, now))
        if before != about:
            since = now
        self._since[shoot] = (about, since)
        return GRACE_PERIOD_SECONDS - (now - since)

    def end(self, shoot: ShootName) -> None:
        """End the wait of a shoot."""
        self._since.pop(shoot, None)
