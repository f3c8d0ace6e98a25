"""Count of open pages: each holds a connection and a queue, so each user has a budget, and all together have room."""

from collections import Counter
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager

from gardenbus.common.api.budgets import Budget, over_budget
from gardenbus.common.errors import TooManyRequests

MOST_PAGES = 200
"""Pages of all users together, for which the dashboard's memory is stated (docs/dashboard.md)."""


class OpenPages:
    """Pages that follow the changes, by user; nobody's are bounded by the room of all alone."""

    def __init__(self, budget_of: Callable[[str, Collection[str]], Budget]) -> None:
        self._budget_of = budget_of
        self._open: Counter[str] = Counter()

    @property
    def counts(self) -> Mapping[str, int]:
        """Open pages by user."""
        return self._open

    @contextmanager
    def page(self, user: str, projects: Collection[str] = ()) -> Generator[None]:
        """Count a page while it is open. Raises OverBudget, TooManyRequests."""
        most = self._budget_of(user, projects).pages
        if user and self._open[user] >= most:
            raise over_budget(user, "pages", most, "close some pages of the dashboard")
        if self._open.total() >= MOST_PAGES:
            raise TooManyRequests(
                f"{MOST_PAGES} pages of this dashboard are open, as many as it has room for: try later"
            )
        self._open[user] += 1
        try:
            yield
        finally:
            self._open[user] -= 1
            if not self._open[user]:
                del self._open[user]
