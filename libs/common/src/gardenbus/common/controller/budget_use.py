"""Use of budgets: what each user holds of a limit in this process.

It is in the STATS of the process' micro service, where `gardenbus top users` finds it, and the highest share of each
limit is a metric. Nothing is kept here: those who count what is held are read when somebody looks.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter

import msgspec
from prometheus_client import Gauge

from gardenbus.common.api.budgets import LIMITS, Budget, LimitUse
from gardenbus.common.api.document import Document
from gardenbus.common.controller.budget_settings import BudgetOf

USED = Gauge(
    "gardenbus_budget_used_ratio",
    "Highest share of a limit of its budget that a user of this process holds.",
    ["limit"],
)

MOST_USES = 500
"""In one report: the highest shares."""

AmountsHeld = Callable[[], Mapping[str, float]]
"""Returns how much of a limit is held, by user."""


class BudgetUse:
    """Use of the limits that this process counts."""

    def __init__(self, budget_of: BudgetOf) -> None:
        self._budget_of = budget_of
        self._counted: dict[str, tuple[AmountsHeld, Callable[[Budget], int], BudgetOf]] = {}

    def count(
        self,
        limit: str,
        held: AmountsHeld,
        most: Callable[[Budget], int] | None = None,
        *,
        budget_of: BudgetOf | None = None,
    ) -> None:
        """Add a limit; `most` is how much of a budget somebody may hold, if that is not the limit.

        `budget_of`: the budget of those who hold it, if they are no users.
        """
        self._counted[limit] = held, most or attrgetter(LIMITS[limit]), budget_of or self._budget_of
        USED.labels(limit).set_function(lambda: max((use.share for use in self._uses(limit)), default=0.0))

    def report(self) -> Document:
        """The highest shares, as the data of STATS."""
        uses: Iterable[LimitUse] = (use for limit in self._counted for use in self._uses(limit))
        return {"budgets": msgspec.to_builtins(sorted(uses, key=lambda use: (-use.share, use.user))[:MOST_USES])}

    def _uses(self, limit: str) -> Iterator[LimitUse]:
        held, most, budget_of = self._counted[limit]
        for user, count in list(held().items()):
            yield LimitUse(user, limit, int(count), most(budget_of(user)))
