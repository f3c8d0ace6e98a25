"""Resources of a cluster's API by their kinds, CustomResourceDefinitions included.

A group's version is read when it is needed, and again when it has no such kind: what was installed meanwhile is
found. Works with every version of Kubernetes.
"""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote

from gardenbus.agent.kubernetes.client import KubernetesClient
from gardenbus.common.api.document import Document
from gardenbus.common.errors import NotFound


class Resource(NamedTuple):
    """A kind as it is served."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """As manifests have it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def collection(self, namespace: str = "") -> str:
        """Path of all objects, or of those of a namespace."""
        inside = f"/namespaces/{quote(namespace, safe='')}" if namespace and self.namespaced else ""
        return f"{_root(self.group, self.version)}{inside}/{self.plural}"

    def path(self, namespace: str, name: str) -> str:
        """Path of one object."""
        return f"{self.collection(namespace)}/{quote(name, safe='')}"


class Discovery:
    """See the module."""

    def __init__(self, client: KubernetesClient) -> None:
        self._client = client
        self._served: dict[tuple[str, str], Mapping[str, Resource]] = {}

    async def find(self, group: str, version: str, kind: str) -> Resource | None:
        """The resource of a kind; None when the cluster has none. Raises GardenbusError."""
        found = self._served.get((group, version), {}).get(kind)
        if found is None:
            self._served[group, version] = await self._read(group, version)
            found = self._served[group, version].get(kind)
        return found

    def forget(self, group: str) -> None:
        """Read a group anew when it is next needed: its definitions have changed."""
        for place in [each for each in self._served if each[0] == group]:
            del self._served[place]

    async def _read(self, group: str, version: str) -> Mapping[str, Resource]:
        try:
            listed = await self._client.request("GET", _root(group, version))
        except NotFound:
            return {}
        resources: list[Document] = listed.get("resources") or []
        return {
            str(each["kind"]): Resource(group, version, str(each["kind"]), str(each["name"]), bool(each["namespaced"]))
            for each in resources
            if "/" not in str(each.get("name")) and each.get("kind")
        }


def _root(group: str, version: str) -> str:
    group, version = quote(group, safe=""), quote(version, safe="")
    return f"/apis/{group}/{version}" if group else f"/api/{version}"
