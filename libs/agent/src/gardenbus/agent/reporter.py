"""Reporter: publishes what an agent reports to the apiserver."""

from collections.abc import Mapping

from prometheus_client import Counter

from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import Bus, Message


class Reporter:
    """Reports of one agent, under its reporter token. Every method raises Unavailable; the caller retries."""

    def __init__(self, *, bus: Bus, subjects: Subjects, token: str, sent: Counter) -> None:
        self._bus = bus
        self._subjects = subjects
        self._token = token
        self._counter = sent
        self.sent = 0

    async def status(self, key: ObjectKey, uid: str, patch: Document, *, trace: str = "") -> None:
        """Report a status patch."""
        await self.publish(key, {"status": patch}, {Header.UID: uid, tracing.TRACEPARENT: trace})

    async def apply(self, key: ObjectKey, manifest: Document) -> None:
        """Apply a manifest that the agent owns."""
        await self.publish(key, manifest, {Header.VERB: "apply"})

    async def delete(self, key: ObjectKey, uid: str = "") -> None:
        """Delete an object that the agent owns."""
        await self.publish(key, {}, {Header.VERB: "delete", Header.UID: uid})

    async def query(self, key: ObjectKey, uid: str = "", held: Document | None = None) -> None:
        """Request that an object, or its removal, is announced again.

        `held`: what runs of it here, from which it can be stored again if it is neither known nor remembered.
        """
        await self.publish(key, held or {}, {Header.QUERY: "exists", Header.UID: uid})

    async def publish(self, key: ObjectKey, body: Document, headers: Mapping[str, str]) -> None:
        """Publish a report about an object; empty headers are left out."""
        present = {name: value for name, value in headers.items() if value}
        await self._bus.publish(Message(self._subjects.report(self._token, key), encode(body), present))
        self.sent += 1
        self._counter.inc()
