"""What of all that was acknowledged survives which fault."""

from enum import StrEnum


class Durability(StrEnum):
    """What survives, by when the servers sync what they write to the disk."""

    PROCESS = "process"
    """The death of any process, at any moment: all is handed to the kernel before it is acknowledged."""

    POWER = "power"
    """The loss of power too: all is synced before it is acknowledged. What the compose file sets."""
