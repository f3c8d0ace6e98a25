"""A resource manager on API servers in memory: a seed's, and those of its shoots by their namespaces."""

import asyncio
import base64
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
import yaml

from gardenbus.agent.kubernetes import connection
from gardenbus.agent.kubernetes.kubeconfig import Access
from gardenbus.common.errors import Conflict
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.gardenlet.backend.seed_backend import SeedBackend
from gardenbus.gardenlet.domain.shoot_record import ShootName, ShootRecord
from gardenbus.gardenlet.resource_manager.manager import ManagerContext, run_resource_manager
from tests.support.stub_kubernetes import StubKubernetes

Document = dict[str, Any]
NAMESPACE = "shoot--dev--hermes"


class _Maker:
    has_kubeconfigs = True


class ShootsOfSeed:
    """The part of a seed's backend that finds its shoots' API servers."""

    def __init__(self, shoots: Mapping[ShootName, str]) -> None:
        self.urls = dict(shoots)
        self.hibernated: set[str] = set()
        self.maker = _Maker()

    def shoots(self) -> list[ShootName]:
        return list(self.urls)

    def load(self, shoot: ShootName) -> ShootRecord | None:
        if shoot not in self.urls:
            return None
        resources: Document = {"control-plane": {"hibernated": True}} if shoot[1] in self.hibernated else {}
        return ShootRecord(namespace=shoot[0], name=shoot[1], uid="uid", has_workers=False, resources=resources)

    async def admin_kubeconfig(self, record: ShootRecord, *, user: str, life: timedelta) -> Document:
        assert user
        assert life
        if record.name not in {name for _, name in self.urls}:
            raise Conflict(f"{record.name} has no API server yet")
        return {"kubeconfig": self.urls[record.namespace, record.name]}


class Managed(NamedTuple):
    """A seed with its resource manager."""

    seed: StubKubernetes
    shoots: ShootsOfSeed

    def bundle(self, name: str, *documents: Document, namespace: str = NAMESPACE, **spec: Any) -> None:
        """Put a ManagedResource and its Secret there."""
        text = "---\n".join(yaml.safe_dump(each) for each in documents)
        self.secret(f"mr-{name}", {"objects.yaml": text}, namespace)
        manifest = a_managed_resource(name, namespace, **{"class": "seed", **spec})
        if self.seed.get("ManagedResource", namespace, name) is None:
            self.seed.put(manifest)
        else:
            self.seed.change("ManagedResource", namespace, name, {"spec": manifest["spec"]})

    def secret(self, name: str, data: Mapping[str, str], namespace: str = NAMESPACE) -> None:
        """Put a Secret there."""
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
        self.seed.put(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": name, "namespace": namespace},
                "data": encoded,
            }
        )

    def managed_resource(self, name: str) -> Document:
        """A ManagedResource that is there."""
        found = self.seed.get("ManagedResource", NAMESPACE, name)
        if found is None:
            raise LookupError(name)
        return found

    def condition(self, name: str, kind: str = "ResourcesApplied") -> tuple[str, str, str]:
        """Status, reason and message of a condition."""
        conditions = cast("list[Document]", self.managed_resource(name).get("status", {}).get("conditions", []))
        found = next((each for each in conditions if each["type"] == kind), None)
        if found is None:
            raise LookupError(kind)
        return (found["status"], found["reason"], found["message"])


def a_managed_resource(name: str, namespace: str = NAMESPACE, **spec: Any) -> Document:
    """A ManagedResource whose Secret has its name."""
    return {
        "apiVersion": "resources.gardener.cloud/v1alpha1",
        "kind": "ManagedResource",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "secretRefs": [{"name": f"mr-{name}"}],
            **{key: value for key, value in spec.items() if value is not None},
        },
    }


def a_config_map(name: str, value: str = "1", **metadata: Any) -> Document:
    """A ConfigMap of a bundle."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "target", **metadata},
        "data": {"a": value},
    }


def with_stub_kubeconfigs(seed: StubKubernetes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the stubs' addresses in the place of kubeconfigs, which only name https."""
    tls = ssl.create_default_context()

    def read(_file: Path) -> Access:
        return Access(seed.url, tls)

    def parse(text: str, *, source: str) -> Access:
        assert source
        return Access(text, tls)

    monkeypatch.setattr(connection, "read_kubeconfig", read)
    monkeypatch.setattr(connection, "parse_kubeconfig", parse)


@asynccontextmanager
async def a_resource_manager(
    seed: StubKubernetes,
    monkeypatch: pytest.MonkeyPatch,
    shoots: Mapping[ShootName, StubKubernetes] = {},
    *,
    sync_seconds: float = 3600.0,
) -> AsyncGenerator[Managed]:
    """A resource manager that runs."""
    with_stub_kubeconfigs(seed, monkeypatch)
    backend = ShootsOfSeed({shoot: stub.url for shoot, stub in shoots.items()})
    context = ManagerContext(
        "seed-1", Path("kubeconfig"), cast("SeedBackend", backend), SystemClock(), sync_seconds=sync_seconds
    )
    running = asyncio.create_task(run_resource_manager(context))
    try:
        yield Managed(seed, backend)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
