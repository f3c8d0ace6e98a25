"""Protocol of a client of one landscape's bus."""

from typing import Protocol

from gardenbus.common.api.keys import Subjects
from gardenbus.common.ports.bus import Bus


class BusClient(Protocol):
    """A connection to the bus of a landscape, with the subjects of that landscape."""

    @property
    def bus(self) -> Bus:
        """The bus."""
        ...

    @property
    def subjects(self) -> Subjects:
        """Its subjects."""
        ...
