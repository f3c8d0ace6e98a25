"""Shoots per seed, with a log of decreases for orderings that are kept incrementally."""

from collections.abc import Iterable, Mapping
from typing import Any

MAX_DECREASES = 100_000
"""Decreases that are remembered; then every ordering is worked out anew."""


class UsageIndex(dict[str, int]):
    """Shoots per seed. An ordering notices an increase by itself when the seed comes first in it; it reads decreases.

    `decreased` are the seeds that have fewer shoots than before, in that order; `assumed` those that a decision has
    counted a shoot on since the last `reconcile`. `heaps` and `heaps_of` belong to scores/usage_heaps.py.
    """

    def __init__(self, usage: Mapping[str, int] | Iterable[tuple[str, int]] = ()) -> None:
        super().__init__(usage)
        self.decreased: list[str] = []
        self.assumed: list[str] = []
        self.heaps: dict[int, Any] = {}
        self.heaps_of: object = None

    def __setitem__(self, seed: str, usage: int) -> None:
        if usage < self.get(seed, 0):
            self.decreased.append(seed)
        super().__setitem__(seed, usage)

    def __delitem__(self, seed: str) -> None:
        self[seed] = 0

    def assume(self, seed: str) -> None:
        """Count one more shoot on a seed."""
        self.assumed.append(seed)
        super().__setitem__(seed, self.get(seed, 0) + 1)

    def reconcile(self, observed: Mapping[str, int], changed: Iterable[str]) -> None:
        """Set the changed seeds, and all that were assumed on, to the usage that was observed."""
        for seeds in (self.assumed, changed):
            for seed in seeds:
                self[seed] = observed.get(seed, 0)
        self.assumed.clear()
        if len(self.decreased) > MAX_DECREASES:
            self.decreased.clear()
            self.heaps.clear()
