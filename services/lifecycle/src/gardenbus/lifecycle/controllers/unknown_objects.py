"""Keeps the condition ObjectsKnown of Seeds: what runs on them that the store neither has nor remembers that it left.

Agents say what they run, and the apiserver keeps it until somebody adopts or forgets it; this compares, periodically,
what is kept with the conditions. Replicas do the same side by side: the second one finds nothing to write.
"""

from collections import defaultdict
from collections.abc import Mapping

import structlog

from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.wait import forever
from gardenbus.common.errors import Conflict, NotFound
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import Store
from gardenbus.lifecycle.domain.assessment import WatchedSeed
from gardenbus.lifecycle.domain.conditions import with_objects_condition

_log = structlog.stdlib.get_logger()


class UnknownObjectsReconciler:
    """See the module. `seeds`: a live view of the Seeds."""

    def __init__(self, store: Store, seeds: Mapping[str, WatchedSeed], clock: Clock) -> None:
        self._store = store
        self._seeds = seeds
        self._clock = clock

    async def run(self, period_seconds: float) -> None:
        """Reconcile forever, once a period."""
        await forever(
            self.reconcile,
            period_seconds=period_seconds,
            sleep=self._clock.sleep,
            interrupted=lambda error: _log.warning("unknown_objects.unreachable", reason=error.message),
        )

    async def reconcile(self) -> None:
        """Write the conditions that differ; what another writes meanwhile is for the next round. Raises Transient."""
        unknown: defaultdict[str, list[ObjectKey]] = defaultdict(list)
        for found in await self._store.unknown_objects():
            unknown[found.seed].append(found.key)
        reported = {name for name, seed in self._seeds.items() if seed.has_unknown}
        for name in sorted(reported | unknown.keys()):
            await self._reconcile_seed(name, unknown[name])

    async def _reconcile_seed(self, name: str, unknown: list[ObjectKey]) -> None:
        stored = await self._store.get(ObjectKey("seed", "", name))
        document = with_objects_condition(stored.document(), unknown, self._clock.now()) if stored else None
        if stored is None or document is None:
            return
        try:
            await self._store.update(stored, document)
        except (Conflict, NotFound):
            return
        _log.warning("seed.unknown_objects", seed=name, unknown=len(unknown))
