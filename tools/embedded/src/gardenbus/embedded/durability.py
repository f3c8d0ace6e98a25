"""Durability of a landscape: the faults that acknowledged writes survive."""

from enum import StrEnum


class Durability(StrEnum):
    """Faults that acknowledged writes survive, by when the servers sync to the disk."""

    PROCESS = "process"
    """The death of any process, at any moment: all is handed to the kernel before it is acknowledged."""

    POWER = "power"
    """The loss of power too: all is synced before it is acknowledged. What the compose file sets."""
