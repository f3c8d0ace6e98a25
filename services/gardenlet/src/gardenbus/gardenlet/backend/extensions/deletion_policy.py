"""Deletions in the seed's API that have to be confirmed: the policy for it is put there, and again when it changed."""

import asyncio

import structlog

from gardenbus.agent.work_loop import WorkLoop
from gardenbus.common.errors import GardenbusError, NotFound
from gardenbus.common.ports.clock import Clock
from gardenbus.gardenlet.backend.extensions.seed_api import SeedAPI
from gardenbus.gardenlet.backend.port import StaleFencingToken
from gardenbus.gardenlet.domain.extension_objects.deletion_policy import OBJECTS

_log = structlog.stdlib.get_logger()

APPLIED_AGAIN_SECONDS = 600.0
"""Time after which the policy is applied again."""

RETRY_SECONDS = 30.0


class DeletionPolicy:
    """See the module. `problem`: the reason why the policy could not be applied, None when it was.

    It is applied beside the rounds of the seed, which a request without a response must not hold up.
    """

    problem: str | None = None

    def __init__(self, seed_name: str, api: SeedAPI, clock: Clock) -> None:
        self._seed_name = seed_name
        self._api = api
        self._clock = clock
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Apply it from now on: the seed was acquired."""
        if self._task is not None:
            self._task.cancel()
        loop = WorkLoop("deletion_policy", self.apply, self._period, seed=self._seed_name)
        self._task = asyncio.create_task(loop.run(), name=f"deletion policy of {self._seed_name}")

    async def stop(self) -> None:
        """Apply it no more; it stays."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _period(self) -> float:
        return APPLIED_AGAIN_SECONDS if self.problem is None else RETRY_SECONDS

    async def apply(self) -> None:
        """Apply it once. An API from before Kubernetes 1.30 has no policies: nothing is protected there."""
        self.problem = None
        try:
            for path, manifest in OBJECTS:
                await self._api.apply(path, manifest)
        except StaleFencingToken:
            return
        except NotFound as error:
            _log.warning("policy.not_applied", seed=self._seed_name, reason=error.message)
        except GardenbusError as error:
            self.problem = self._api.failure(error, "Deletions in the seed's API are not protected").message
