"""Versions of NATS and Redis that may be used, and those of which no vulnerability is known."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Versions(NamedTuple):
    """Lines of releases (major, minor), each with the patch that is its least; all lines after them are newer.

    A line between them that is not named has no such patch.
    """

    patches: Mapping[tuple[int, int], int]

    def has(self, version: Sequence[int]) -> bool:
        """True for a version (major, minor, patch) that may be used; what is not stated counts as 0."""
        major, minor, patch, *_ = (*version, 0, 0, 0)
        least = self.patches.get((major, minor))
        return patch >= least if least is not None else (major, minor) > max(self.patches)

    def __str__(self) -> str:
        """`2.12.12, 2.14.3 or newer`."""
        return f"{', '.join(f'{major}.{minor}.{patch}' for (major, minor), patch in self.patches.items())} or newer"


NATS = Versions({(2, 12): 12, (2, 14): 3})
"""Scheduled messages and atomic batches came with 2.12; the patches fix advisories 2026-1 to 2026-28 of NATS."""

NATS_WITH_IDENTITIES = Versions({(2, 14): 3})
"""Denied queue subscriptions and confined consumers."""

REDIS = Versions({(7, 0): 0, (7, 2): 0})
"""Functions came with 7.0. Distributions mend lines that Redis has left, so that a version alone does not say more."""

REDIS_WITHOUT_VULNERABILITIES = Versions(
    {(7, 2): 16, (7, 4): 11, (8, 2): 9, (8, 4): 6, (8, 6): 6, (8, 8): 2, (8, 10): 1},
)
"""Redis' own releases of which no vulnerability is known: `doctor` names them beside an older one."""
