"""Observations of the seeds that this gardenlet has made: their Seeds, and whether their gardenlets run.

A process that hosts many seeds on one connection reads both from the streams. A gardenlet with a connection of its own
may read the streams of its own seed only: it requests from the apiserver.
"""

from datetime import timedelta
from typing import Any, Protocol

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.keys import LEASE_NAMESPACE, Header, ObjectKey, Subjects
from gardenbus.common.ports.bus import Bus
from gardenbus.gardenlet.clients.lease_heartbeat import LEASES, observed_lease
from gardenbus.gardenlet.clients.object_lookup import ObjectLookup
from gardenbus.gardenlet.domain.lease import StandBy, decide_lease
from gardenbus.gardenlet.watch.binding_cache import BINDINGS

_decode = json_decoder(dict[str, Any])


class ManagedGardenlets(Protocol):
    """See the module. Every method raises GardenbusError."""

    async def seed(self, name: str) -> Document | None:
        """The Seed; None when there is none."""
        ...

    async def is_running(self, seed: str) -> bool:
        """True while somebody holds the Lease of a seed."""
        ...


class GardenletsOnStreams:
    """`ManagedGardenlets` read from the streams. `grace_period`: of Leases."""

    def __init__(self, bus: Bus, subjects: Subjects, grace_period: timedelta) -> None:
        self._bus = bus
        self._subjects = subjects
        self._grace_period = grace_period

    async def seed(self, name: str) -> Document | None:
        """The Seed as last announced to its own gardenlet."""
        subject = self._subjects.view(name, ObjectKey("seed", "", name))
        last = await self._bus.last(self._subjects.stream(BINDINGS), subject)
        if last is None or last.marker is not None or last.headers.get(Header.VERB) == "deleted":
            return None
        if Header.TOO_LARGE in last.headers:
            return {}
        seed: Document = _decode(last.body)
        return seed

    async def is_running(self, seed: str) -> bool:
        """See the protocol; by the server's clock."""
        stream = self._subjects.stream(LEASES)
        decision = decide_lease(
            observed_lease(await self._bus.last(stream, self._subjects.lease(seed))),
            identity="",
            is_held=False,
            now=await self._bus.server_now(stream),
            grace_period=self._grace_period,
        )
        return isinstance(decision, StandBy)


class RequestedGardenlets:
    """`ManagedGardenlets` requested from the apiserver."""

    def __init__(self, lookup: ObjectLookup) -> None:
        self._lookup = lookup

    async def seed(self, name: str) -> Document | None:
        """See the protocol."""
        return await self._lookup.get(ObjectKey("seed", "", name))

    async def is_running(self, seed: str) -> bool:
        """See the protocol. A Lease that is not renewed counts until it has gone from the bus."""
        lease = await self._lookup.get(ObjectKey("lease", LEASE_NAMESPACE, seed))
        return bool(lease and section(lease, "spec").get("holderIdentity"))
