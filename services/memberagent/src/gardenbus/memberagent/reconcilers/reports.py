"""What one cluster's agent says on the bus. Raises Unavailable: whoever says something looks again, and says it."""

from gardenbus.common.ports.bus import Bus, Message
from gardenbus.common.resources.document import Document, encode
from gardenbus.common.resources.keys import Header, ObjectKey, Subjects
from gardenbus.common.resources.member_clusters import reporter_of
from gardenbus.memberagent.reconcilers.counters import REPORTS


class Reporter:
    """See the module."""

    def __init__(self, *, bus: Bus, subjects: Subjects, cluster: str) -> None:
        self._bus = bus
        self._subjects = subjects
        self._token = reporter_of(cluster)

    async def status(self, key: ObjectKey, uid: str, patch: Document) -> None:
        """Report a status, to be merged into the one that is there. Raises Unavailable."""
        await self._publish(key, encode({"status": patch}), {Header.UID: uid})

    async def apply(self, key: ObjectKey, manifest: Document) -> None:
        """Register the cluster, or change what it is registered as. Raises Unavailable."""
        await self._publish(key, encode(manifest), {Header.VERB: "apply"})

    async def delete(self, key: ObjectKey, uid: str) -> None:
        """Have the cluster leave the fleet. Raises Unavailable."""
        await self._publish(key, b"{}", {Header.VERB: "delete", Header.UID: uid})

    async def _publish(self, key: ObjectKey, body: bytes, headers: dict[str, str]) -> None:
        await self._bus.publish(Message(self._subjects.report(self._token, key), body, headers))
        REPORTS.inc()
