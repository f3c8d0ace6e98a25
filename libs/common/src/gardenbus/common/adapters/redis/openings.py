"""The opening of a store, as text: `<format>.<number>.<token>` (functions/opening.lua). Pure.

The number is the version from which the store was opened. Versions never go back, so of two servers that both have been
master the one with the higher number was master later: it is the epoch by which an older master is known.
"""

from typing import Any


def opening_number(opening: Any) -> int:
    """Number of a stored opening; -1 without one, 0 where a version of the library without numbers wrote it."""
    if not isinstance(opening, bytes):
        return -1
    parts = opening.decode(errors="replace").split(".")
    return int(parts[1]) if len(parts) == 3 and parts[1].isdigit() else 0  # noqa: PLR2004  the three of the module
