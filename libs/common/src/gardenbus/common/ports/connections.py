"""Connections of a service that keeps objects."""

from dataclasses import dataclass

from gardenbus.common.api.keys import Subjects
from gardenbus.common.ports.bus import Bus
from gardenbus.common.ports.store import Store


@dataclass(frozen=True)
class Connections:
    """The store, the bus, and the subjects of the landscape."""

    store: Store
    bus: Bus
    subjects: Subjects
