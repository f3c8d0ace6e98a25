"""Cache of the budgets, kept current by the informer."""

import msgspec
import structlog

from gardenbus.common.api.budgets import BUDGETS, Budget, Budgets, budgets_of
from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.identity.principals import groups_of, principal_of
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import BadRequest, InvalidResource

AGENTS_CONNECTIONS = 3
"""Of a gardenlet, member agent or extension: one, one of its replacement, and one that is about to end."""

SCHEDULERS_CONNECTIONS = 8
"""Of a scheduler of one's own: one for each replica, and those that are about to end."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class BudgetsCache:
    """Subscribe `changed` to an informer of ConfigMaps. One that cannot be read changes nothing."""

    def __init__(self) -> None:
        self._budgets = Budgets()

    def changed(self, key: ObjectKey, _: StoredObject | None, new: StoredObject | None) -> None:
        """Take over a change of the ConfigMap."""
        if key != BUDGETS:
            return
        try:
            self._budgets = budgets_of(new.document() if new is not None else None)
        except InvalidResource as error:
            log.warning("budgets.unreadable", reason=error.message)

    def of(self, user: str) -> Budget:
        """The budget of a user; Projects do not count for connections, which are no Project's.

        Agents get few connections unless another number is set for them: each holds up to `max_pending` of memory.
        """
        try:
            principal = principal_of(user)
        except BadRequest:
            return self._budgets.of(user)
        budget = self._budgets.of(user, groups_of(principal))
        if principal.role != "user" and budget.connections == self._budgets.default.connections:
            most = SCHEDULERS_CONNECTIONS if principal.role == "scheduler" else AGENTS_CONNECTIONS
            return msgspec.structs.replace(budget, connections=min(most, budget.connections))
        return budget
