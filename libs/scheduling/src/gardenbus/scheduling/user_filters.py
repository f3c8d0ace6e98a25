"""Protocol of users' own filters; they are found through the entry point group below and passed in."""

from collections.abc import Callable
from typing import Any, Protocol, cast, runtime_checkable

from gardenbus.common.api.document import Document
from gardenbus.common.api.document_parts import name_of

ENTRY_POINT_GROUP = "gardenbus.scheduler.filters"


@runtime_checkable
class SeedFilter(Protocol):
    """A filter of a user's own, applied to each seed that passed ours, in the order of the filters' names.

    Both methods must be pure: the same arguments always give the same result. An exception leaves the shoot pending,
    with the filter and the exception in its status, and the decision is tried again.
    """

    @property
    def name(self) -> str:
        """The name of the filter in rejections and explanations."""
        ...

    def shoot_input(self, shoot: Document) -> Any:
        """All that the filter reads from a shoot, as a JSON value; shoots with equal inputs share the result."""
        ...

    def filter(self, shoot_input: Any, seed: Document) -> str | None:
        """The reason why the seed is not feasible; None when it passes."""
        ...


class FilterFailed(Exception):
    """A user's filter has raised an exception."""


class OlderSeedFilter:
    """A filter whose methods have the names of earlier versions: `wish` and `refuse`."""

    def __init__(self, given: Any) -> None:
        self._given = given
        self.name: str = given.name

    def shoot_input(self, shoot: Document) -> Any:
        """The result of its `wish`."""
        return self._given.wish(shoot)

    def filter(self, shoot_input: Any, seed: Document) -> str | None:
        """The result of its `refuse`."""
        return self._given.refuse(shoot_input, seed)


def input_of(seed_filter: SeedFilter, shoot: Document) -> Any:
    """The input of a filter. Raises FilterFailed."""
    try:
        return seed_filter.shoot_input(shoot)
    except Exception as error:
        raise _failed(seed_filter, error, f"shoot_input of the shoot {name_of(shoot)}") from error


def reason_of(seed_filter: SeedFilter, shoot_input: Any, seed: Document) -> str | None:
    """The reason of a filter against a seed. Raises FilterFailed."""
    try:
        return seed_filter.filter(shoot_input, seed)
    except Exception as error:
        raise _failed(seed_filter, error, f"filter of the seed {name_of(seed)}") from error


def _failed(seed_filter: SeedFilter, error: Exception, call: str) -> FilterFailed:
    return FilterFailed(f"the filter {seed_filter.name} raised {type(error).__name__} in {call}: {error}".rstrip(": "))


def filter_of(loaded: object, reserved: frozenset[str]) -> SeedFilter:
    """The filter of an entry point: the object itself, or the result of calling it without arguments.

    `reserved` are the names of other rules. Raises ValueError for what is no filter, or has a reserved name.
    """
    makes_one = isinstance(loaded, type) or (callable(loaded) and not _is_filter(loaded))
    made = cast("Callable[[], object]", loaded)() if makes_one else loaded
    if not _is_filter(made):
        raise ValueError("it is no filter: it must have name, shoot_input(shoot) and filter(shoot_input, seed)")
    found = made if isinstance(made, SeedFilter) else OlderSeedFilter(made)
    if not isinstance(cast("object", found.name), str) or not found.name or found.name in reserved:
        raise ValueError(f"its name {found.name!r} must be a text that no other rule has")
    return found


def _is_filter(given: object) -> bool:
    methods = (("shoot_input", "filter"), ("wish", "refuse"))
    return hasattr(given, "name") and any(all(callable(getattr(given, one, None)) for one in both) for both in methods)
