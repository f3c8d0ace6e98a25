"""Inventory of what each Work has in a cluster: AppliedWorks, as KubeFleet's, written before the objects they list.

An AppliedWork is the owner of its objects, by owner references. A Work that is cut while it is applied leaves no object
that is not listed, so everything is found again for removal.
Source: KubeFleet's `apis/placement/v1beta1/appliedwork_types.go`.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from gardenbus.agent.domain.documents import mappings
from gardenbus.agent.kubernetes.connection import ClusterConnection
from gardenbus.agent.kubernetes.discovery import Resource
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.kinds import PLACEMENT
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.clock import Clock
from gardenbus.memberagent.domain.work_status import ManifestKey

FIELD_MANAGER = "work-api-agent"
"""As KubeFleet's member agent calls itself."""

API_VERSION = f"{PLACEMENT}/v1beta1"
KIND = "AppliedWork"
DEFINITION_NAME = f"appliedworks.{PLACEMENT}"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_COLLECTION = f"/apis/{API_VERSION}/appliedworks"
_INSTALLED_SECONDS, _POLL_SECONDS = 20.0, 0.2
_ANY: Document = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

DEFINITION: Document = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": DEFINITION_NAME},
    "spec": {
        "group": PLACEMENT,
        "scope": "Cluster",
        "names": {"kind": KIND, "listKind": f"{KIND}List", "plural": "appliedworks", "singular": "appliedwork"},
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _ANY, "status": _ANY}}},
            }
        ],
    },
}


class AppliedResource(msgspec.Struct, frozen=True, omit_defaults=True):
    """One object of a Work."""

    ordinal: int
    version: str
    kind: str
    resource: str
    name: str
    group: str = ""
    namespace: str = ""
    """"" for an object without a namespace."""

    @property
    def key(self) -> ManifestKey:
        """Its identity in the cluster."""
        return ManifestKey(self.group, self.kind, self.namespace, self.name)

    @property
    def served_as(self) -> Resource:
        """Its kind."""
        return Resource(self.group, self.version, self.kind, self.resource, namespaced=bool(self.namespace))

    @property
    def path(self) -> str:
        """Its path in the API."""
        return self.served_as.path(self.namespace, self.name)


class AppliedWork(msgspec.Struct, frozen=True):
    """Objects of a Work in the cluster."""

    name: str
    uid: str
    resources: tuple[AppliedResource, ...] = ()

    @property
    def owner_reference(self) -> Document:
        """The mark of its objects."""
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "name": self.name,
            "uid": self.uid,
            "blockOwnerDeletion": False,
        }


class Inventory:
    """The AppliedWorks of one cluster."""

    def __init__(self, namespace: str, clock: Clock) -> None:
        self._namespace = namespace
        self._clock = clock
        self._works: dict[str, AppliedWork] = {}
        self.is_loaded = False

    @property
    def works(self) -> Mapping[str, AppliedWork]:
        """By name. Raises Unavailable before they were read."""
        if not self.is_loaded:
            raise Unavailable("the AppliedWorks of the cluster are not read yet")
        return self._works

    async def load(self, connection: ClusterConnection) -> None:
        """Install the kind, and read what is there. Raises GardenbusError."""
        await self._install(connection)
        found, _ = await connection.client.list_all(_COLLECTION)
        works = [_read(each) for each in found]
        self._works = {each.name: each for each in works}
        self.is_loaded = True

    async def ensure(self, connection: ClusterConnection, work: str) -> AppliedWork:
        """The AppliedWork of a Work, made if there is none."""
        spec = {"workName": work, "workNamespace": self._namespace}
        wanted: Document = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": work}, "spec": spec}
        live = await connection.client.apply(f"{_COLLECTION}/{work}", wanted, manager=FIELD_MANAGER)
        self._works[work] = _read(live)
        return self._works[work]

    async def record(
        self, connection: ClusterConnection, work: str, resources: Sequence[AppliedResource]
    ) -> AppliedWork:
        """List the objects of a Work, before they are made and after they are gone."""
        before = self.works[work]
        if set(before.resources) != set(resources):
            status = {"appliedResources": [msgspec.to_builtins(each) for each in _in_order(resources)]}
            wanted: Document = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": work}, "status": status}
            live = await connection.client.apply(f"{_COLLECTION}/{work}/status", wanted, manager=FIELD_MANAGER)
            self._works[work] = _read(live)
        return self._works[work]

    async def forget(self, connection: ClusterConnection, work: str) -> None:
        """Remove the AppliedWork of a Work that has nothing left."""
        applied = self.works.get(work)
        if applied is not None:
            await connection.client.delete(f"{_COLLECTION}/{work}", uid=applied.uid)
            self._works.pop(work, None)

    async def _install(self, connection: ClusterConnection) -> None:
        path = f"{_DEFINITIONS}/{DEFINITION_NAME}"
        live = await connection.client.get(path)
        if live is None:
            live = await connection.client.apply(path, DEFINITION, manager=FIELD_MANAGER)
        deadline = self._clock.monotonic() + _INSTALLED_SECONDS
        while await connection.discovery.find(PLACEMENT, "v1beta1", KIND) is None:
            if self._clock.monotonic() > deadline:
                raise Unavailable(f"the kind {KIND} is installed, and not served")
            await self._clock.sleep(_POLL_SECONDS)


def owners_of(live: Document) -> list[Document]:
    """Owner references of an object."""
    return mappings(section(live, "metadata"), "ownerReferences")


def is_applied_work(owner: Document) -> bool:
    """True for the owner reference of an AppliedWork."""
    return owner.get("kind") == KIND and str(owner.get("apiVersion")).startswith(f"{PLACEMENT}/")


def _in_order(resources: Iterable[AppliedResource]) -> list[AppliedResource]:
    return sorted(resources, key=lambda each: (each.ordinal, each.key))


def _read(live: Document) -> AppliedWork:
    metadata = section(live, "metadata")
    listed = mappings(section(live, "status"), "appliedResources")
    return AppliedWork(
        str(metadata.get("name")),
        str(metadata.get("uid")),
        tuple(msgspec.convert(each, AppliedResource, strict=False) for each in listed),
    )
