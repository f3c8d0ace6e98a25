"""Protocol of users' own filters; they are found through the entry point group below and passed in."""

from collections.abc import Callable
from typing import Any, Protocol, cast, runtime_checkable

from gardenbus.common.api.document import Document

ENTRY_POINT_GROUP = "gardenbus.scheduler.filters"


@runtime_checkable
class SeedFilter(Protocol):
    """A filter of a user's own, applied to each seed that passed ours, in the order of the filters' names.

    Both methods must be pure: the same arguments always give the same result. An exception leaves the shoot queued.
    """

    @property
    def name(self) -> str:
        """The name of the filter in rejections and explanations."""
        ...

    def wish(self, shoot: Document) -> Any:
        """All that the filter reads from a shoot, as a JSON value; shoots with equal values share the result."""
        ...

    def refuse(self, wish: Any, seed: Document) -> str | None:
        """The reason why the seed does not pass; None when it does."""
        ...


def filter_of(loaded: object, reserved: frozenset[str]) -> SeedFilter:
    """The filter of an entry point: the object itself, or the result of calling it without arguments.

    `reserved` are the names of other rules. Raises ValueError for what is no filter, or has a reserved name.
    """
    makes_one = isinstance(loaded, type) or (callable(loaded) and not isinstance(loaded, SeedFilter))
    made = cast("Callable[[], object]", loaded)() if makes_one else loaded
    match made:
        case SeedFilter() if callable(made.wish) and callable(made.refuse):
            if isinstance(cast("object", made.name), str) and made.name and made.name not in reserved:
                return made
            raise ValueError(f"its name {made.name!r} must be a text that no other rule has")
        case _:
            raise ValueError("it is no filter: it must have name, wish(shoot) and refuse(wish, seed)")
