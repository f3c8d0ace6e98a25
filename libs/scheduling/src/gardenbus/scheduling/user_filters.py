"""Filters of a user's own: what they look like. They are found through the entry point group below and passed in."""

from collections.abc import Callable
from typing import Any, Protocol, cast, runtime_checkable

from gardenbus.common.resources.document import Document

ENTRY_POINT_GROUP = "gardenbus.scheduler.filters"


@runtime_checkable
class SeedFilter(Protocol):
    """One rule more, asked for each seed that passed ours, in the order of the filters' names.

    Both methods must be pure: the same arguments always give the same answer. An exception leaves the shoot queued.
    """

    @property
    def name(self) -> str:
        """What the rule is called in refusals and explanations."""
        ...

    def wish(self, shoot: Document) -> Any:
        """All that the filter wants to know of a shoot, as a JSON value; shoots that wish the same share the answer."""
        ...

    def refuse(self, wish: Any, seed: Document) -> str | None:
        """Why the seed will not do; None when it will."""
        ...


def filter_of(loaded: object, taken: frozenset[str]) -> SeedFilter:
    """The filter that an entry point stands for: itself, or what it makes when it is called without arguments.

    `taken` are the names of other rules. Raises ValueError for what is no filter, or has a name that is taken.
    """
    makes_one = isinstance(loaded, type) or (callable(loaded) and not isinstance(loaded, SeedFilter))
    made = cast("Callable[[], object]", loaded)() if makes_one else loaded
    match made:
        case SeedFilter() if callable(made.wish) and callable(made.refuse):
            if isinstance(cast("object", made.name), str) and made.name and made.name not in taken:
                return made
            raise ValueError(f"its name {made.name!r} must be a text that no other rule has")
        case _:
            raise ValueError("it is no filter: it must have name, wish(shoot) and refuse(wish, seed)")
