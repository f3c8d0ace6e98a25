"""Bastion objects in the seed's API: hosts that extensions make to lead into shoots."""

from collections.abc import Sequence

from gardenbus.common.api.document import Document
from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.clock import Clock
from gardenbus.gardenlet.backend.extensions.seed_api import SeedAPI
from gardenbus.gardenlet.backend.port import StaleFencingToken
from gardenbus.gardenlet.domain.extension_objects.bastions import bastion_object, failed_status, plan_bastion
from gardenbus.gardenlet.domain.extension_objects.contract import deletion_patch, request_time, requested
from gardenbus.gardenlet.domain.extension_objects.kinds import path_of
from gardenbus.gardenlet.domain.managed_resources.names import RECONCILE


class SeedBastions:
    """See the module."""

    def __init__(self, api: SeedAPI, clock: Clock) -> None:
        self._api = api
        self._clock = clock

    async def reconcile(self, bastions: Sequence[Document]) -> list[Document]:
        """Have the objects of Bastions be there, or be gone; returns patches of their status.

        Raises StaleFencingToken.
        """
        return [await self._reconcile(each) for each in bastions]

    async def _reconcile(self, bastion: Document) -> Document:
        wanted = bastion_object(bastion)
        path = path_of(wanted.kind, wanted.namespace, wanted.name)
        try:
            plan = plan_bastion(bastion, await self._api.get(path), now=self._clock.now())
            at = request_time(self._clock.now())
            if plan.is_requested:
                await self._api.write(path, lambda live: requested(live, wanted, RECONCILE, at))
            if plan.is_deleted and await self._api.patch(path, deletion_patch(at)) is not None:
                await self._api.delete(path)
        except StaleFencingToken:
            raise
        except GardenbusError as error:
            problem = self._api.failure(error, f"Bastion {wanted.namespace}/{wanted.name} cannot be reconciled")
            return failed_status(bastion, problem.message, now=self._clock.now())
        return plan.status
