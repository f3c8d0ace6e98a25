"""Usage per seed that says what fell: whoever keeps seeds in order of it need only be told that."""

from collections.abc import Iterable, Mapping
from typing import Any

MOST_FALLS = 100_000
"""Falls that are remembered; then every order is worked out anew."""


class Tally(dict[str, int]):
    """Shoots per seed. What rises is found out when a seed comes first in an order; what falls must be said.

    `fallen` are the seeds that have fewer shoots than before, in the order in which that came about; `placed` those
    that a decision has counted a shoot on since the last `settle`. `orders` belongs to ranking.py.
    """

    def __init__(self, usage: Mapping[str, int] | Iterable[tuple[str, int]] = ()) -> None:
        super().__init__(usage)
        self.fallen: list[str] = []
        self.placed: list[str] = []
        self.orders: dict[int, Any] = {}
        self.orders_of: object = None

    def __setitem__(self, seed: str, usage: int) -> None:
        if usage < self.get(seed, 0):
            self.fallen.append(seed)
        super().__setitem__(seed, usage)

    def __delitem__(self, seed: str) -> None:
        self[seed] = 0

    def place(self, seed: str) -> None:
        """Count one more shoot on a seed."""
        self.placed.append(seed)
        super().__setitem__(seed, self.get(seed, 0) + 1)

    def settle(self, told: Mapping[str, int], changed: Iterable[str]) -> None:
        """Take over what was told of some seeds, and of all that were counted on."""
        for seeds in (self.placed, changed):
            for seed in seeds:
                self[seed] = told.get(seed, 0)
        self.placed.clear()
        if len(self.fallen) > MOST_FALLS:
            self.fallen.clear()
            self.orders.clear()
