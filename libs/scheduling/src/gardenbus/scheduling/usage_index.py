"""Shoots per seed, with a log of decreases for orderings that are kept incrementally."""

from collections.abc import Iterable, Mapping
from typing import Any

MAX_DECREASES = 100_000
"""Decreases that are remembered; then every ordering is worked out anew."""


class UsageIndex(dict[str, int]):
    """Shoots per seed. An ordering notices an increase by itself when the seed comes first in it; it reads decreases.

    `decreased` are the seeds that have fewer shoots than before, in that order; `assumed` those that a decision has
    counted a shoot on since the last `reconcile`, of which there were so many as `reconciles` says. `heaps` and
    `heaps_of` belong to scores/usage_heaps.py, `levels` and `levels_of` to scores/usage_levels.py; while there are
    levels, `touched` has all seeds whose usage was set.
    """

    def __init__(self, usage: Mapping[str, int] | Iterable[tuple[str, int]] = ()) -> None:
        super().__init__(usage)
        self.decreased: list[str] = []
        self.assumed: list[str] = []
        self.touched: list[str] = []
        self.reconciles = 0
        self.heaps: dict[int, Any] = {}
        self.heaps_of: object = None
        self.levels: dict[str, Any] = {}
        self.levels_of: object = None

    def __setitem__(self, seed: str, usage: int) -> None:
        if usage < self.get(seed, 0):
            self.decreased.append(seed)
        if self.levels:
            self.touched.append(seed)
        super().__setitem__(seed, usage)

    def __delitem__(self, seed: str) -> None:
        self[seed] = 0

    def assume(self, seed: str) -> None:
        """Count one more shoot on a seed."""
        self.assumed.append(seed)
        super().__setitem__(seed, self.get(seed, 0) + 1)

    def reconcile(self, observed: Mapping[str, int], changed: Iterable[str]) -> None:
        """Set the changed seeds, and all that were assumed on, to the usage that was observed."""
        decreased, usage_of, store = self.decreased, self.get, super().__setitem__
        for seeds in (self.assumed, changed):
            for seed in seeds:
                usage = observed.get(seed, 0)
                if usage < usage_of(seed, 0):
                    decreased.append(seed)
                store(seed, usage)
        if self.levels:
            self.touched += self.assumed
            self.touched += changed
        self.assumed.clear()
        self.reconciles += 1
        if len(decreased) > MAX_DECREASES:
            decreased.clear()
            self.heaps.clear()
        if len(self.touched) > MAX_DECREASES:
            self.touched.clear()
            self.levels.clear()
