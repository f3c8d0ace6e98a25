"""Writes to a set's scale subresource through the apiserver."""

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.keys import Subjects
from gardenbus.common.controller.api_client import ApiserverClient, RequestPrecondition
from gardenbus.common.errors import Terminal
from gardenbus.common.ports.bus import Bus

USER = "autoscaler"


class ScaleClient:
    """Scales sets as the user `autoscaler`."""

    def __init__(self, bus: Bus, subjects: Subjects) -> None:
        self._api = ApiserverClient(bus, subjects, user=USER, unknown_error=Terminal)

    async def set_replicas(self, target: StoredObject, replicas: int, autoscaler: StoredObject) -> None:
        """Set the replicas, only while both objects have the versions given.

        Raises Conflict when one has not, Unavailable without a response (it may have happened), Terminal or NotFound
        when it is rejected.
        """
        key = target.key
        version = str(target.version)
        body = {"namespace": key.namespace, "name": key.name, "replicas": replicas, "resourceVersion": version}
        await self._api.request("scale", body, precondition=RequestPrecondition(autoscaler.key, autoscaler.version))
