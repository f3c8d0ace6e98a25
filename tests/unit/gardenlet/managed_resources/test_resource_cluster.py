"""The cache of a cluster's managed objects is never older than the events that have come."""

from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gardenbus.agent.kubernetes.client import KubernetesClient
from gardenbus.agent.kubernetes.connection import Connector, KubeconfigSource
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.gardenlet.domain.managed_resources.references import ResourceReference
from gardenbus.gardenlet.resource_manager.target import ResourceCluster, ServedObject
from tests.support.eventually import eventually
from tests.support.resource_managers import a_config_map, with_stub_kubeconfigs
from tests.support.stub_kubernetes import StubKubernetes, a_stub_kubernetes

Document = dict[str, Any]
MANAGED = {"resources.gardener.cloud/managed-by": "gardener"}


class Watched(NamedTuple):
    """A cluster whose ConfigMaps are watched, and the objects of which events have told."""

    stub: StubKubernetes
    cluster: ResourceCluster
    events: list[Document]

    async def served(self, name: str) -> ServedObject:
        found = await self.cluster.served(ResourceReference("v1", "ConfigMap", "target", name))
        assert found is not None
        return found

    async def until_events(self, number: int) -> None:
        """Wait until so many events have come."""

        async def came() -> None:
            assert len(self.events) >= number

        await eventually(came, every=0.01)

    def respond_late(self, monkeypatch: pytest.MonkeyPatch, method: str, change: Callable[[], object]) -> None:
        """Have responses to writes come after their event, and after that of a change by hand."""
        write = getattr(KubernetesClient, method)

        async def late(client: KubernetesClient, path: str, body: Document, *, manager: str) -> Document:
            before = len(self.events)
            written: Document = await write(client, path, body, manager=manager)
            await self.until_events(before + 1)
            change()
            await self.until_events(before + 2)
            return written

        monkeypatch.setattr(KubernetesClient, method, late)


@pytest.fixture
async def watched(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Watched]:
    async with a_stub_kubernetes() as stub:
        with_stub_kubeconfigs(stub, monkeypatch)
        connector = Connector(KubeconfigSource(Path("kubeconfig")), SystemClock(), timeout_seconds=60.0)
        events: list[Document] = []
        cluster = ResourceCluster("seed-1", connector, SystemClock(), events.append)
        cluster.open()
        try:
            found = Watched(stub, cluster, events)
            cluster.watch([(await found.served("first")).resource])
            stub.put(a_config_map("first", labels=MANAGED))
            await found.until_events(1)
            yield found
        finally:
            await cluster.close()


async def test_an_object_that_is_deleted_before_the_response_to_its_creation_is_not_cached(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched.respond_late(monkeypatch, "create", lambda: watched.stub.delete("ConfigMap", "target", "one"))
    served = await watched.served("one")
    await watched.cluster.create(served, a_config_map("one", labels=MANAGED))
    assert await watched.cluster.live(served) is None


async def test_a_change_whose_event_comes_before_the_response_to_an_older_write_stays_cached(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_hand = {"data": {"a": "by hand"}}
    watched.respond_late(
        monkeypatch, "merge_patch", lambda: watched.stub.change("ConfigMap", "target", "first", by_hand)
    )
    served = await watched.served("first")
    assert (await watched.cluster.patch(served, {"data": {"a": "2"}}))["data"] == {"a": "2"}
    assert (await watched.cluster.live(served) or {})["data"] == {"a": "by hand"}
