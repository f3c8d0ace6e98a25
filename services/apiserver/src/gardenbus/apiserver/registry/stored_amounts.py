"""Amounts that Projects hold in the store: read again and again, for the metric of budgets and `top users`."""

from collections.abc import Mapping
from functools import partial
from typing import NoReturn

import structlog

from gardenbus.common.api.budgets import STORED_LIMITS, Budget
from gardenbus.common.controller.budget_settings import BudgetSettings
from gardenbus.common.controller.budget_use import BudgetUse
from gardenbus.common.controller.wait import Sleep, forever
from gardenbus.common.errors import Transient
from gardenbus.common.ports.store import Store

PERIOD_SECONDS = 15

_PREFIX = "Project "

_log = structlog.stdlib.get_logger()


class StoredAmounts:
    """Amounts of the namespaces of Projects, as they were read last."""

    def __init__(self, store: Store, budgets: BudgetSettings, use: BudgetUse) -> None:
        self._store = store
        self._budgets = budgets
        self._held: dict[str, Mapping[str, int]] = {limit: {} for limit in STORED_LIMITS}
        self._namespaces: dict[str, str] = {}
        for limit in STORED_LIMITS:
            use.count(limit, partial(self._held.__getitem__, limit), budget_of=self._budget_of)

    async def run(self, sleep: Sleep) -> NoReturn:
        """Read them again and again, until cancelled."""
        await forever(self.read, period_seconds=PERIOD_SECONDS, sleep=sleep, interrupted=_postponed)

    async def read(self) -> None:
        """Read them once. Raises Unavailable."""
        amounts = await self._store.stored_amounts()
        projects = {namespace: self._budgets.project_of(namespace) for namespace in amounts}
        self._namespaces = {f"{_PREFIX}{project}": namespace for namespace, project in projects.items() if project}
        for limit, index in zip(STORED_LIMITS, range(2), strict=True):
            self._held[limit] = {holder: amounts[namespace][index] for holder, namespace in self._namespaces.items()}

    def _budget_of(self, holder: str) -> Budget:
        return self._budgets.within("", self._namespaces.get(holder, ""))


def _postponed(error: Transient) -> None:
    _log.info("stored_amounts.postponed", reason=error.message)
