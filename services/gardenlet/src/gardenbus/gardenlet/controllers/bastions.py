"""Reconciler of the Bastions of the gardenlet's seed, where extensions make their hosts."""

import structlog

from gardenbus.common.errors import GardenbusError
from gardenbus.gardenlet.domain.extension_objects.bastions import ListedBastion, listed
from gardenbus.gardenlet.seed import ServedSeed

AT_REST_SECONDS, BUSY_SECONDS = 30.0, 60.0
"""Interval of the lists; and how long after a change of a Bastion one is made with each heartbeat instead."""

_log = structlog.stdlib.get_logger()


class BastionsReconciler:
    """See the module."""

    def __init__(self, seed: ServedSeed) -> None:
        self._seed = seed
        self._listed_at = self._changed_at = float("-inf")
        self._found: list[ListedBastion] = []

    async def reconcile(self) -> None:
        """Reconcile all Bastions when that is due. What cannot be read is read in the next round."""
        now = self._seed.clock.monotonic()
        interval = 0.0 if now - self._changed_at < BUSY_SECONDS else AT_REST_SECONDS
        if not self._seed.backend.has_bastions or now - self._listed_at < interval:
            return
        try:
            bastions = await self._seed.lookup.list("bastion", f"spec.seedName={self._seed.name}")
            patches = await self._seed.backend.reconcile_bastions(bastions)
        except GardenbusError as error:
            _log.warning("bastions.unknown", seed=self._seed.name, reason=error.message)
            return
        found = [listed(each) for each in bastions]
        for bastion, patch in zip(found, patches, strict=True):
            if patch:
                self._seed.reporter.enqueue_status(bastion.key, bastion.uid, patch)
        self._listed_at = now
        if found != self._found:
            self._found, self._changed_at = found, now

    def stand_by(self) -> None:
        """Drop all state: another holder reports from now on."""
        self._listed_at = float("-inf")
