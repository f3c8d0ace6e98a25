"""How long is kept quiet about what a shoot waits for: whoever has to do the next part is at it, if all is well."""

from collections.abc import Hashable

from gardenbus.common.ports.clock import Clock
from gardenbus.gardenlet.backend.port import ShootName

PATIENCE_SECONDS = 1.0
"""What takes longer than this is said."""


class Patience:
    """See the module. `about` is what is waited for: another one is waited for anew."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: dict[ShootName, tuple[Hashable, float]] = {}

    def left(self, shoot: ShootName, about: Hashable) -> float:
        """For how many seconds more nothing is said; none or less once it is time."""
        now = self._clock.monotonic()
        before, since = self._since.get(shoot, (None, now))
        if before != about:
            since = now
        self._since[shoot] = (about, since)
        return PATIENCE_SECONDS - (now - since)

    def end(self, shoot: ShootName) -> None:
        """It waits no more."""
        self._since.pop(shoot, None)
