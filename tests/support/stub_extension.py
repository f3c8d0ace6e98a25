"""An extension of the tests: it obeys Gardener's contract for all kinds, and misbehaves on request.

It looks at all objects in turns. What it makes of one is an entry of `made`, which goes when the object is deleted, and
stays when it was migrated.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from gardenbus.agent.kubernetes.client import KubernetesClient
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings
from gardenbus.common.errors import Conflict, GardenbusError
from gardenbus.common.ports.clock import timestamp
from gardenbus.gardenlet.domain.extension_objects.kinds import API_VERSION, CLUSTERS, GROUP, PLURALS, path_of
from tests.support.eventually import eventually

MANAGER = "stub-extension"
FINALIZER = f"{GROUP}/stub"
OPERATION = "gardener.cloud/operation"
SECRETS = "/api/v1/namespaces/garden/secrets"
CLUSTER_SCOPED = ("BackupBucket", "BackupEntry", "Cluster")
Behaviour = Literal["silent", "stuck", "failing"]
"""Takes nothing up; takes it up and never ends; reports an error."""


@dataclass
class StubExtension:
    """See the module. `behaviours` by kind; `failures` left before one that fails is well again (-1: never)."""

    client: KubernetesClient
    behaviours: dict[str, Behaviour] = field(default_factory=dict[str, Behaviour])
    codes: tuple[str, ...] = ()
    failures: int = -1
    made: dict[tuple[str, str, str], str] = field(default_factory=dict[tuple[str, str, str], str])
    history: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    """Type of each operation that was begun, with kind and name."""

    found: dict[tuple[str, str, str], Document] = field(default_factory=dict[tuple[str, str, str], Document])
    """State of each object when it was taken up for the first time."""

    kept: dict[tuple[str, str, str], Document] = field(default_factory=dict[tuple[str, str, str], Document])
    """State of each object as it was left."""

    changed: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    """Objects whose state somebody else has changed since."""

    missing: list[str] = field(default_factory=list[str])
    """Objects that a state names, and that were not there."""

    async def run(self) -> None:
        """Act until cancelled."""
        while True:
            for kind, plural in PLURALS.items():
                with suppress(GardenbusError):
                    for each in await self.client.items(f"/apis/{API_VERSION}/{plural}"):
                        with suppress(Conflict):
                            if not _is_at_rest(each):
                                await self._act(kind, each)
            await asyncio.sleep(0.1)

    async def report(self, kind: str, namespace: str, name: str, **status: Any) -> None:
        """Write fields of an object's status, whatever the contract says."""
        await self.client.merge_patch(f"{path_of(kind, namespace, name)}/status", {"status": status}, manager=MANAGER)

    async def _act(self, kind: str, live: Document) -> None:
        metadata = section(live, "metadata")
        key = kind, str(metadata.get("namespace") or ""), str(metadata["name"])
        operation = section(metadata, "annotations").get(OPERATION)
        last, deleting = section(live, "status", "lastOperation"), bool(metadata.get("deletionTimestamp"))
        if self.behaviours.get(kind) == "silent" or await self.is_ignored(key[1]):
            return
        is_migrated = (last.get("type"), last.get("state")) == ("Migrate", "Succeeded")
        if operation == "wait-for-state" and not deleting:
            return
        if is_migrated and operation != "restore":
            if operation:
                await self._take_off(key)
            return
        if deleting:
            await self._delete(key, live)
        elif operation == "migrate":
            await self._migrate(key, live)
        elif operation == "restore":
            await self._work(key, live, "Restore")
            await self._take_off(key)
        elif operation == "reconcile" or not last or last.get("state") != "Succeeded":
            if operation:
                await self._take_off(key)
            is_new = not last or (last.get("type") == "Create" and last.get("state") != "Succeeded")
            await self._work(key, live, "Create" if is_new else "Reconcile")

    async def is_ignored(self, namespace: str) -> bool:
        """True without a Cluster, and for a shoot that has failed; what is in no namespace is of no shoot."""
        if not namespace:
            return False
        cluster = await self.client.get(f"{CLUSTERS}/{namespace}")
        if cluster is None:
            return True
        return section(cluster, "spec", "shoot", "status", "lastOperation").get("state") == "Failed"

    async def _is_forced(self, namespace: str) -> bool:
        """True for a shoot whose deletion is forced: what was made of it stays, and nobody is held up."""
        if not namespace:
            return False
        shoot = section(await self.client.get(f"{CLUSTERS}/{namespace}") or {}, "spec", "shoot")
        return section(shoot, "metadata", "annotations").get("confirmation.gardener.cloud/force-deletion") == "true"

    async def _work(self, key: tuple[str, str, str], live: Document, operation: str) -> None:
        await self._finalize(key, live, present=True)
        if not await self._begin(key, live, operation):
            return
        state = section(live, "status", "state")
        if state != self.kept.get(key, state):
            self.changed.append(key)
        if key not in self.found:
            self.found[key] = state
            await self._check_resources(key[1], live)
        self.made.setdefault(key, str(state.get("id") or f"{key[0]}-{len(self.history)}"))
        kind, namespace, name = key
        self.kept[key] = {"id": self.made[key], "revision": int(state.get("revision") or 0) + 1}
        status: Document = {"state": self.kept[key]}
        if kind == "Infrastructure":
            status["providerStatus"] = {"vpc": self.made[key]}
            status["networking"] = {"nodes": ["10.10.0.0/16"]}
            status["egressCIDRs"] = ["198.51.100.7/32"]
        if kind == "BackupBucket":
            status["providerStatus"] = {"container": self.made[key]}
            status["generatedSecretRef"] = await self._generated(name, live)
        if kind == "Bastion":
            status["ingress"] = {"ip": "198.51.100.22"}
        if kind == "OperatingSystemConfig" and section(live, "spec").get("purpose") == "provision":
            secret = f"osc-{name}"
            manifest = {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": secret, "namespace": namespace},
                "stringData": {"cloud_config": "#!/bin/sh"},
            }
            await self.client.apply(f"/api/v1/namespaces/{namespace}/secrets/{secret}", manifest, manager=MANAGER)
            status["cloudConfig"] = {"secretRef": {"name": secret, "namespace": namespace}}
            reference = {"apiVersion": "v1", "kind": "Secret", "name": secret}
            status["resources"] = [{"name": "user-data", "resourceRef": reference}]
        await self._end(key, live, operation, status)

    async def _check_resources(self, namespace: str, live: Document) -> None:
        """Find out whether the Secrets that a state names came with it."""
        for each in mappings(section(live, "status").get("resources")):
            path = f"/api/v1/namespaces/{namespace}/secrets/{section(each, 'resourceRef')['name']}"
            if await self.client.get(path) is None:
                self.missing.append(path)

    async def _generated(self, bucket: str, live: Document) -> Document:
        """Credentials for a bucket alone, made with those that it has been given."""
        own = await self.client.get(f"{SECRETS}/{section(live, 'spec', 'secretRef')['name']}")
        name = f"generated-{bucket}"
        manifest = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": "garden"},
            "data": {"by": section(own or {}, "data").get("key", "")},
        }
        await self.client.apply(f"{SECRETS}/{name}", manifest, manager=MANAGER)
        return {"name": name, "namespace": "garden"}

    async def _migrate(self, key: tuple[str, str, str], live: Document) -> None:
        if not await self._begin(key, live, "Migrate"):
            return
        await self._end(key, live, "Migrate", {})
        await self._finalize(key, live, present=False)
        await self._take_off(key)

    async def _delete(self, key: tuple[str, str, str], live: Document) -> None:
        if await self._is_forced(key[1]):
            self.history.append(("ForceDelete", key[0], key[2]))
            await self._finalize(key, live, present=False)
            return
        if not await self._begin(key, live, "Delete"):
            return
        self.made.pop(key, None)
        self.kept.pop(key, None)
        await self._end(key, live, "Delete", {})
        await self._finalize(key, live, present=False)

    async def _begin(self, key: tuple[str, str, str], live: Document, operation: str) -> bool:
        """Report the beginning; False if that is all that happens."""
        self.history.append((operation, key[0], key[2]))
        behaviour = self.behaviours.get(key[0])
        if behaviour == "failing" and self.failures:
            self.failures -= 1
            error = {"description": f"{key[0]} cannot be made, as requested.", "codes": list(self.codes)}
            await self.report(
                *key,
                lastOperation=_last(operation, "Error", 50),
                lastError=error,
                observedGeneration=section(live, "metadata").get("generation"),
            )
            return False
        await self.report(*key, lastOperation=_last(operation, "Processing", 1))
        return behaviour != "stuck"

    async def _end(self, key: tuple[str, str, str], live: Document, operation: str, status: Document) -> None:
        status |= {
            "lastOperation": _last(operation, "Succeeded", 100),
            "lastError": None,
            "observedGeneration": section(live, "metadata").get("generation"),
        }
        await self.report(*key, **status)

    async def _finalize(self, key: tuple[str, str, str], live: Document, *, present: bool) -> None:
        finalizers: list[str] = section(live, "metadata").get("finalizers") or []
        if (FINALIZER in finalizers) == present:
            return
        wanted = [*finalizers, FINALIZER] if present else [each for each in finalizers if each != FINALIZER]
        await self.client.merge_patch(path_of(*key), {"metadata": {"finalizers": wanted}}, manager=MANAGER)

    async def _take_off(self, key: tuple[str, str, str]) -> None:
        patch = {"metadata": {"annotations": {OPERATION: None}}}
        await self.client.merge_patch(path_of(*key), patch, manager=MANAGER)


@asynccontextmanager
async def running(stub: StubExtension) -> AsyncGenerator[StubExtension]:
    """The stub acts within the block."""
    task = asyncio.create_task(stub.run())
    try:
        yield stub
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def define_kinds(client: KubernetesClient, versions: Mapping[str, str] | None = None) -> None:
    """Have the API serve all kinds of extension objects, without schemas, and wait until it does.

    `versions`: those of kinds that it has in another one.
    """
    given = versions or {}
    for kind, plural in {**PLURALS, "Cluster": "clusters"}.items():
        name = f"{plural}.{GROUP}"
        version: Document = {
            "name": given.get(kind, "v1alpha1"),
            "served": True,
            "storage": True,
            "subresources": {} if kind == "Cluster" else {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        }
        manifest: Document = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": name},
            "spec": {
                "group": GROUP,
                "scope": "Cluster" if kind in CLUSTER_SCOPED else "Namespaced",
                "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
                "versions": [version],
            },
        }
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
        await client.apply(path, manifest, manager=MANAGER)

    async def are_served() -> None:
        for kind, plural in {**PLURALS, "Cluster": "clusters"}.items():
            await client.list_all(f"/apis/{GROUP}/{given.get(kind, 'v1alpha1')}/{plural}")

    await eventually(are_served)


def _is_at_rest(live: Document) -> bool:
    """True for an object of which nothing is requested."""
    metadata = section(live, "metadata")
    is_requested = OPERATION in section(metadata, "annotations") or bool(metadata.get("deletionTimestamp"))
    return not is_requested and section(live, "status", "lastOperation").get("state") == "Succeeded"


def _last(operation: str, state: str, progress: int) -> Document:
    now = timestamp(datetime.now(UTC))
    return {
        "type": operation,
        "state": state,
        "progress": progress,
        "description": f"{operation} of the stub",
        "lastUpdateTime": now,
    }
