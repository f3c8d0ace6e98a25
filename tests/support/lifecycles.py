"""The lifecycle service beside the gardenlets of a landscape in one process."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

import prometheus_client

from gardenbus.common.adapters.nats import jetstream
from gardenbus.common.ports.connections import Connections
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.common.runtime.health import Health
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.lifecycle.app import start_lifecycle
from gardenbus.lifecycle.settings import LifecycleSettings
from tests.support.gardenlets import Garden


@asynccontextmanager
async def lifecycle(garden: Garden) -> AsyncGenerator[None]:
    """A lifecycle service that ends with the block."""
    async with AsyncExitStack() as stack:
        bus = await stack.enter_async_context(jetstream.connect(garden.nats_url, "lifecycle", garden.subjects.prefix))
        context = ServiceContext(
            "lifecycle",
            LifecycleSettings(prefix=garden.subjects.prefix),
            health=Health(prometheus_client.CollectorRegistry()),
            clock=SystemClock(),
        )
        await start_lifecycle(context, Connections(garden.store, bus, garden.subjects))
        yield
        await context.close()
