"""The seed's Kubernetes API, for the steps of shoots: writes only while the seed is this gardenlet's."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from gardenbus.agent.kubernetes.client import KubernetesClient
from gardenbus.agent.kubernetes.connection import Connector, KubeconfigSource
from gardenbus.agent.kubernetes.errors import Unauthorized, api_message
from gardenbus.common.api.document import Document
from gardenbus.common.errors import AlreadyExists, Conflict, GardenbusError, NotFound
from gardenbus.common.ports.clock import Clock
from gardenbus.gardenlet.backend.port import StepFailed
from gardenbus.gardenlet.domain.extension_objects.kinds import GROUP

FIELD_MANAGER = "gardenlet"
REQUEST_SECONDS = 20.0
_TRIES = 5
_NO_SUCH_KIND = "page not found"
"""Text of a response 404 that is about a path, not about an object."""


class SeedAPI:
    """See the module. `owned` raises StaleFencingToken once another gardenlet has acquired the seed."""

    def __init__(self, kubeconfig: Path, clock: Clock, owned: Callable[[], AbstractContextManager[None]]) -> None:
        self._connector = Connector(KubeconfigSource(kubeconfig), clock, timeout_seconds=REQUEST_SECONDS)
        self._owned = owned

    def open(self) -> None:
        """Make the session; a loop must run."""
        self._connector.open()

    async def close(self) -> None:
        """Close the session."""
        await self._connector.close()

    async def get(self, path: str) -> Document | None:
        """An object; None without one. Raises GardenbusError."""
        return await (await self._client()).get(path)

    async def items(self, collection: str, **query: str) -> list[Document]:
        """All objects of a collection; none of a kind that the API does not have. Raises GardenbusError."""
        return await (await self._client()).items(collection, **query)

    async def write(self, path: str, build: Callable[[Document | None], Document | None]) -> Document | None:
        """Create or replace an object by what `build` makes of the live one; None leaves it as it is.

        Built anew after a conflict. Returns the object as it is then.
        """
        for left in reversed(range(_TRIES)):
            client = await self._client()
            live = await client.get(path)
            wanted = build(live)
            if wanted is None:
                return live
            self._check_owned()
            try:
                if live is None:
                    return await client.create(path.rpartition("/")[0], wanted, manager=FIELD_MANAGER)
                return await client.replace(path, wanted, manager=FIELD_MANAGER)
            except (AlreadyExists, Conflict, NotFound) as error:
                if not left or (isinstance(error, NotFound) and live is None):
                    raise
        raise AssertionError

    async def apply(self, path: str, manifest: Document) -> None:
        """Apply an object of which the gardenlet owns what it gives. Raises GardenbusError."""
        self._check_owned()
        await (await self._client()).apply(path, manifest, manager=FIELD_MANAGER)

    async def patch(self, path: str, patch: Document) -> Document | None:
        """Patch an object; None without one. Raises GardenbusError."""
        self._check_owned()
        try:
            return await (await self._client()).merge_patch(path, patch, manager=FIELD_MANAGER)
        except NotFound:
            return None

    async def delete(self, path: str) -> bool:
        """Request the deletion of an object; False without one. Raises GardenbusError."""
        self._check_owned()
        return await (await self._client()).delete(path)

    async def _client(self) -> KubernetesClient:
        return (await self._connector.connection()).client

    def _check_owned(self) -> None:
        with self._owned():
            pass

    def failure(self, error: GardenbusError, what: str) -> StepFailed:
        """The failure of a step by an error of the API."""
        if isinstance(error, Unauthorized):
            self._connector.forget()
        if isinstance(error, NotFound) and GROUP in error.message and _NO_SUCH_KIND in error.message:
            return StepFailed(
                f"{what}: the seed's API does not have this kind: its CustomResourceDefinition is missing"
            )
        return StepFailed(f"{what}: {api_message(error)}")
