"""Recovery of a store that was restored or rebuilt: what runs on seeds may be in no object of it, or elsewhere.

It begins when a relay opens such a store, and lasts until one lease period has passed and the gardenlets of all Seeds
have sent an inventory of what they run, or an operator lets the landscape go on without them. Meanwhile the store
binds no shoot that was ordered before, moves none, and lets no seed pass for empty. Shoots ordered since go to seeds
that have responded.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from gardenbus.common.api.keys import ObjectKey

QUERIED = "queried"
"""Answer of a seed whose gardenlet has sent its inventory; of any other, who goes on without it."""

NAMED_SEEDS = 5


RECOVERY_POLL_SECONDS = 5.0
"""Interval at which a controller that waits for a recovery looks again."""


class Recovery(msgspec.Struct, frozen=True):
    """A recovery that lasts. `has_waited`: one lease period has passed. `responses`: what is known of each seed."""

    recovery_id: str
    cause: str
    began_at: str
    has_waited: bool
    responses: Mapping[str, str]
    silent: Sequence[str]

    @property
    def text(self) -> str:
        """Cause and what it waits for, in a sentence."""
        return f"the store went back ({self.cause}), and {self.awaited}"

    @property
    def awaited(self) -> str:
        """The seeds that are silent, or what else it waits for."""
        if not self.silent:
            return "one lease period has not passed since"
        named = ", ".join(self.silent[:NAMED_SEEDS])
        more = f" and {len(self.silent) - NAMED_SEEDS} more" if len(self.silent) > NAMED_SEEDS else ""
        return f"these seeds have not reported yet what they run: {named}{more}"


class InventoryItem(NamedTuple):
    """Something that runs on a seed, with its uid."""

    key: ObjectKey
    uid: str


class InventoryResult(NamedTuple):
    """Result of an inventory: whether its recovery lasts, how much of it is unknown, and of that could not be kept."""

    is_current: bool
    unknown: int = 0
    unnamed: int = 0


class Recoveries(Protocol):
    """Recoveries as everybody sees them. All raise Unavailable."""

    async def recovery(self) -> Recovery | None:
        """Read the recovery; None when there is none."""
        ...

    async def is_recovering(self, key: ObjectKey) -> bool:
        """True while the recovery keeps a shoot from every seed."""
        ...

    async def take_inventory(self, seed: str, recovery_id: str, items: Sequence[InventoryItem]) -> InventoryResult:
        """Keep as unknown what a seed runs and the store neither has there nor remembers; then the seed has responded.

        Nothing happens unless this recovery lasts.
        """
        ...

    async def go_on_without(self, seeds: Sequence[str], by: str) -> Recovery | None:
        """Wait for these Seeds no longer. Raises NotFound for one that is not there; None without a recovery."""
        ...
