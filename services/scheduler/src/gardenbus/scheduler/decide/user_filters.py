"""Filters of a user's own: what they look like. They are found through the entry point group below and passed in."""

from typing import Any, Protocol

from gardenbus.common.resources.document import Document

ENTRY_POINT_GROUP = "gardenbus.scheduler.filters"


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
