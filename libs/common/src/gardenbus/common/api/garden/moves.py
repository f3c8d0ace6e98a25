"""Moves of shoots between seeds as they are planned, and the response to `explain-drain`, which has them."""

from collections.abc import Sequence

import msgspec


class Move(msgspec.Struct, frozen=True):
    """The move of one shoot from its seed to another."""

    namespace: str
    name: str
    source: str
    target: str


class Immovable(msgspec.Struct, frozen=True):
    """A shoot that is not moved, and why. `waits`: only for now, since an operation on it is under way."""

    namespace: str
    name: str
    reason: str
    waits: bool = False


class ExplainedDrain(msgspec.Struct, frozen=True, rename="camel"):
    """Response to `explain-drain`: where the shoots of a seed would move, and which stay.

    `obstacle`: why its gardenlet cannot hand shoots over. `not_planned`: shoots beyond those of one plan.
    """

    seed: str
    obstacle: str = ""
    shoots: int = 0
    moves: Sequence[Move] = ()
    stays: Sequence[Immovable] = ()
    not_planned: int = 0
