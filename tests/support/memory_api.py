"""The apiserver's API on a store and a bus in memory, for clients that take `connected`."""

import contextlib
from collections.abc import AsyncGenerator, Iterable

from gardenbus.apiserver.access.audit_log import AuditLog
from gardenbus.apiserver.access.authorizer import Authorizer
from gardenbus.apiserver.domain.request_subjects import api_filters
from gardenbus.apiserver.registry.read_cache import ManifestCache
from gardenbus.apiserver.registry.seed_binder import SeedBinder
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.apiserver.requests.api import ApiHandler
from gardenbus.cli.client.api import ApiClient
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import Conflict, Forbidden
from tests.support.clocks import FakeClock
from tests.support.memory.bus import MemoryBus
from tests.support.memory.store import MemoryStore


class MemoryApi:
    """Handlers of a real apiserver. Each connection has its own, as each command has an event loop of its own."""

    def __init__(
        self,
        *,
        is_authorizing: bool = False,
        clock: FakeClock | None = None,
        store: MemoryStore | None = None,
    ) -> None:
        self._is_authorizing = is_authorizing
        self.clock = clock or FakeClock()
        self.store = store or MemoryStore(self.clock)
        self.subjects = Subjects()

    async def create(self, documents: Iterable[Document]) -> None:
        """Store manifests; those that refer to something of which there is none are left out."""
        for document in documents:
            with contextlib.suppress(Forbidden, Conflict):
                await self.store.create(document)

    @contextlib.asynccontextmanager
    async def connected(self, *_: object) -> AsyncGenerator[ApiClient]:
        """In the place of `gardenbus.cli.client.api.connected`."""
        bus = MemoryBus(self.clock)
        await self.serve(bus)
        yield ApiClient(bus, self.subjects)

    async def serve(self, bus: MemoryBus) -> None:
        """Answer requests on a bus."""
        handler = ApiHandler(
            bus=bus,
            store=self.store,
            clock=self.clock,
            subjects=self.subjects,
            writer=Writer(self.store, self.clock),
            seed_binder=SeedBinder(self.store, self.clock),
            manifests=ManifestCache(self.store),
            authorizer=Authorizer(self.store, AuditLog(self.clock), is_enforced=self._is_authorizing),
            concurrency=8,
        )
        await bus.serve("apiserver", "1.0.0", dict.fromkeys(api_filters(self.subjects), handler.handle))
