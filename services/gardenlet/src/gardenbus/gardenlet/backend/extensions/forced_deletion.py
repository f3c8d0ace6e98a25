"""Removal of all that is in a shoot's namespace, by a deletion that is forced: nothing that others hold up stays.

Source: Gardener's `pkg/gardenlet/controller/shoot/shoot/cleaner.go`.
"""

from collections.abc import Iterable

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import name_of
from gardenbus.common.controller.backoff import Backoff
from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.clock import Clock
from gardenbus.gardenlet.backend.extensions.seed_api import SeedAPI
from gardenbus.gardenlet.backend.port import StaleFencingToken, StepFailed
from gardenbus.gardenlet.domain.extension_objects.kinds import CLUSTERS
from gardenbus.gardenlet.domain.managed_resources.names import API_VERSION

WAIT_SECONDS = 300.0
"""Limit of the wait for objects to be gone, as in Gardener."""

_BACKOFF = Backoff(base_seconds=0.25, cap_seconds=5.0)
_NO_FINALIZERS: Document = {"metadata": {"finalizers": None}}


class ForcedDeletion:
    """See the module. Every method raises StepFailed, StaleFencingToken."""

    def __init__(self, api: SeedAPI, clock: Clock) -> None:
        self._api = api
        self._clock = clock

    async def delete_managed_resources(self, namespace: str) -> None:
        """Delete all ManagedResources; those for the shoot, which cannot be reached, keep their objects there."""
        collection = f"/apis/{API_VERSION}/namespaces/{namespace}/managedresources"
        try:
            live = await self._api.items(collection)
            for each in live:
                path = f"{collection}/{name_of(each)}"
                await self._api.patch(path, {"spec": {"keepObjects": False}})
                await self._api.delete(path)
                if not section(each, "spec").get("class"):
                    await self._api.patch(path, _NO_FINALIZERS)
            await self._until_gone(collection, "ManagedResources")
        except GardenbusError as error:
            raise self._failed(error, f"ManagedResources of {namespace} cannot be deleted") from error

    async def delete_cluster(self, namespace: str) -> None:
        """Delete the Cluster: extensions leave what is left of the shoot alone."""
        try:
            await self._api.delete(f"{CLUSTERS}/{namespace}")
        except GardenbusError as error:
            raise self._failed(error, f"Cluster {namespace} cannot be deleted") from error

    async def delete_core_objects(self, namespace: str) -> None:
        """Delete all ConfigMaps and Secrets, whatever finalizers they have."""
        try:
            for plural in ("configmaps", "secrets"):
                collection = f"/api/v1/namespaces/{namespace}/{plural}"
                await self._force(collection, await self._api.items(collection))
        except GardenbusError as error:
            raise self._failed(error, f"ConfigMaps and Secrets of {namespace} cannot be deleted") from error

    async def _force(self, collection: str, objects: Iterable[Document]) -> None:
        for each in objects:
            path = f"{collection}/{name_of(each)}"
            if section(each, "metadata").get("finalizers"):
                await self._api.patch(path, _NO_FINALIZERS)
            await self._api.delete(path)

    async def _until_gone(self, collection: str, what: str) -> None:
        began, pauses = self._clock.monotonic(), _BACKOFF.pauses()
        while live := await self._api.items(collection):
            if self._clock.monotonic() - began >= WAIT_SECONDS:
                raise StepFailed(f"{what} are still present: {', '.join(sorted(map(name_of, live)))}")
            await self._clock.sleep(next(pauses))

    def _failed(self, error: GardenbusError, what: str) -> GardenbusError:
        return error if isinstance(error, StaleFencingToken | StepFailed) else self._api.failure(error, what)
