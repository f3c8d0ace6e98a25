"""ControllerRegistrations and what belongs to them, and the loop over their installations driven by hand."""

from typing import Any

from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import ReconcileResult, Requeue
from gardenbus.common.errors import Conflict, Terminal
from gardenbus.controllermanager.controllers.controller_installation import LOOP
from tests.support.builders import CORE, merged
from tests.support.loops import Garden, request_of


def a_registration(name: str, *resources: tuple[str, str] | Document, **changes: Any) -> Document:
    """A ControllerRegistration of resources: kind and type, or all that the manifest has."""
    listed = [each if isinstance(each, dict) else {"kind": each[0], "type": each[1]} for each in resources]
    registration: Document = {
        "apiVersion": CORE,
        "kind": "ControllerRegistration",
        "metadata": {"name": name},
        "spec": {"resources": listed},
    }
    return merged(registration, changes)


def a_deployment(name: str, **changes: Any) -> Document:
    """A ControllerDeployment."""
    deployment: Document = {
        "apiVersion": "core.gardener.cloud/v1",
        "kind": "ControllerDeployment",
        "metadata": {"name": name},
    }
    return merged(deployment, changes)


def a_bucket(name: str, seed: str, provider: str = "aws") -> Document:
    """A BackupBucket of a seed."""
    spec = {"seedName": seed, "provider": {"type": provider, "region": "eu-west-1"}}
    return {"apiVersion": CORE, "kind": "BackupBucket", "metadata": {"name": name}, "spec": spec}


def an_entry(name: str, bucket: str, seed: str) -> Document:
    """A BackupEntry of a seed."""
    metadata = {"name": name, "namespace": "garden-dev"}
    return {
        "apiVersion": CORE,
        "kind": "BackupEntry",
        "metadata": metadata,
        "spec": {"bucketName": bucket, "seedName": seed},
    }


def a_domain(name: str, role: str, domain: str, provider: str) -> Document:
    """A Secret of the landscape that describes a domain."""
    annotations = {"dns.gardener.cloud/domain": domain, "dns.gardener.cloud/provider": provider}
    metadata = {
        "name": name,
        "namespace": "garden",
        "labels": {"gardener.cloud/role": role},
        "annotations": annotations,
    }
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}


class Installations:
    """The loop over seeds' installations, whose callback is called with each change that a test makes."""

    def __init__(self, garden: Garden | None = None) -> None:
        self.garden = garden or Garden()
        self.enqueued: list[str] = []
        built = LOOP.build(self.garden.context(LOOP.name, lambda key: self.enqueued.append(key.name)))
        self._reconcile, self._changed = built.reconcile, built.changed
        self._seen: dict[ObjectKey, StoredObject] = {}
        self._waiting: set[str] = set()

    def observe(self) -> list[str]:
        """Have the loop see all that changed; returns the seeds that it enqueued, in order."""
        self.enqueued.clear()
        now: dict[ObjectKey, StoredObject] = {}
        for kind in LOOP.follows:
            now.update(self.garden.store.state.rows.of_kind(kind))
        for key in sorted({*now, *self._seen}):
            old, new = self._seen.get(key), now.get(key)
            if old != new:
                self._changed(key, old, new)
        self._seen = now
        self._waiting.update(self.enqueued)
        return sorted(set(self.enqueued))

    async def add(self, *documents: Document) -> list[str]:
        """Create objects; returns the seeds that are enqueued."""
        await self.garden.add(*documents)
        return self.observe()

    async def remove(self, key: ObjectKey) -> list[str]:
        """Remove an object, whatever finalizers it has; returns the seeds that are enqueued."""
        if await self.garden.delete(key):
            await self.garden.change(key, lambda document: document["metadata"].pop("finalizers"))
        return self.observe()

    async def reconcile(self, seed: str) -> ReconcileResult | Terminal:
        """Reconcile a seed's installations on what the loop has observed."""
        for _ in range(10):
            try:
                result = await self._reconcile(request_of(LOOP, ObjectKey("seed", "", seed)))
            except Conflict:
                continue
            except Terminal as error:
                return error
            if not isinstance(result, Requeue):
                self.observe()
                return result
        raise AssertionError(f"{seed} keeps changing")

    async def reconcile_all(self) -> None:
        """Reconcile whatever is enqueued until nothing is; one that waits for something else is not tried again."""
        self.observe()
        for _ in range(100):
            if not self._waiting:
                return
            seed = min(self._waiting)
            self._waiting.discard(seed)
            await self.reconcile(seed)
        raise AssertionError(f"{self._waiting} keep being enqueued")

    def of(self, seed: str) -> dict[str, Document]:
        """The installations of a seed, by registration."""
        stored = self.garden.store.state.rows.of_kind("controllerinstallation").values()
        return {
            each["spec"]["registrationRef"]["name"]: each
            for each in (one.document() for one in stored)
            if each["spec"]["seedRef"]["name"] == seed
        }
