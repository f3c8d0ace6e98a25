"""Real API servers for tests of what works on them: control planes of the maker `processes`, without a gardenlet."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import aiohttp

from gardenbus.agent.kubernetes.client import KubernetesClient
from gardenbus.agent.kubernetes.kubeconfig import parse_kubeconfig
from gardenbus.common.api.configuration.gardenlet import ShootBackendSettings
from gardenbus.common.api.document import Document
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.gardenlet.backend.port import FencingToken
from gardenbus.gardenlet.backend.seed_backend import SeedBackend
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_record import Run, ShootRecord
from gardenbus.gardenlet.operation.flow_runner import run_flow
from tests.support.builders import a_shoot
from tests.support.eventually import eventually
from tests.support.seed_backends import a_local_backend

NAMESPACE = "garden-dev"


class RealCluster(NamedTuple):
    """One API server."""

    backend: SeedBackend
    record: ShootRecord
    client: KubernetesClient
    kubeconfig: str

    async def another_kubeconfig(self, life: timedelta) -> str:
        """A kubeconfig that is good for so long."""
        made = await self.backend.admin_kubeconfig(self.record, user="test", life=life)
        return str(made["kubeconfig"])

    async def get(self, path: str) -> Document:
        """An object that is there."""
        found = await self.client.get(path)
        assert found is not None, path
        return found


@asynccontextmanager
async def real_clusters(directory: Path, binaries: str, names: Sequence[str]) -> AsyncGenerator[list[RealCluster]]:
    """API servers that end with the block."""
    settings = ShootBackendSettings(type="processes", binaries=binaries, keep_running=False)
    backend = a_local_backend(directory / "seed", settings, SystemClock())
    await backend.start()
    await backend.acquire(FencingToken(1, 1))
    async with aiohttp.ClientSession() as session:
        try:
            yield list(await asyncio.gather(*(_a_cluster(backend, name, session) for name in names)))
        finally:
            await backend.stop()


async def _a_cluster(backend: SeedBackend, name: str, session: aiohttp.ClientSession) -> RealCluster:
    shoot = a_shoot(name, NAMESPACE, spec={"kubernetes": {"version": "1.34.4"}, "provider": {"workers": []}})
    run = Run(operation="Create", generation=1, number=1)
    record = ShootRecord(namespace=NAMESPACE, name=name, uid=f"uid-{name}", has_workers=False, run=run)
    backend.save(record)

    async def created() -> ShootRecord:
        """The record after a flow without failures; as a gardenlet does, one that failed is run again."""
        result = await run_flow(
            backend,
            backend.load((NAMESPACE, name)) or record,
            ObservedShoot.of(shoot, uid=record.uid, version=1, role="run"),
            is_wanted=lambda: True,
            on_progress=lambda _record, _tasks: None,
        )
        failures = [failure.message for failure in result.failures]
        assert not failures, failures
        return result.record

    record = await eventually(created, every=1.0)
    made = await backend.admin_kubeconfig(record, user="test", life=timedelta(hours=1))
    text = str(made["kubeconfig"])
    access = parse_kubeconfig(text, source=name)
    assert isinstance(access.tls, ssl.SSLContext)
    return RealCluster(backend, record, access.client(session, timeout_seconds=10), text)
