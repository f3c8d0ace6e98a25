"""Health of shoots by their extension objects: a list of each kind for all shoots of the seed at once."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from gardenbus.common.api.configuration.gardenlet import DNS_RECORD
from gardenbus.common.api.document import Document
from gardenbus.common.api.document_parts import namespace_of
from gardenbus.common.api.garden.extensions import HEARTBEAT_NAME
from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.clock import Clock
from gardenbus.gardenlet.backend.extensions.seed_api import SeedAPI
from gardenbus.gardenlet.backend.port import GardenReader
from gardenbus.gardenlet.domain.extension_objects.health import (
    Heartbeats,
    ReportingObject,
    heartbeats_by_kind,
    reported_problems,
    reporting,
)
from gardenbus.gardenlet.domain.extension_objects.kinds import API_VERSION, PLURALS
from gardenbus.gardenlet.domain.shoot_status import CONDITIONS, CheckError

CARE_SECONDS = 30.0
"""Time for which a list is good: a round of care looks at all shoots, and needs one."""

_LEASES = "/apis/coordination.k8s.io/v1/leases"


class ExtensionHealth:
    """See the module. `kinds` are those that extensions act on here."""

    def __init__(
        self, seed_name: str, api: SeedAPI, garden: GardenReader, clock: Clock, kinds: Collection[str]
    ) -> None:
        self._seed_name = seed_name
        self._api = api
        self._garden = garden
        self._clock = clock
        self._kinds = [kind for kind in kinds if kind != DNS_RECORD]  # which has no health of a shoot
        self._listed_at = float("-inf")
        self._objects: Mapping[str, Sequence[ReportingObject]] = {}
        self._heartbeats: Heartbeats = {}
        self._lock = asyncio.Lock()

    async def problems(self, namespace: str) -> dict[str, str]:
        """Problems of the shoot with this namespace, by condition. They are unknown while the API is away."""
        async with self._lock:
            if self._clock.monotonic() - self._listed_at >= CARE_SECONDS:
                try:
                    await self._list()
                except GardenbusError as error:
                    problem = self._api.failure(error, "Extensions cannot be checked").message
                    return dict.fromkeys(CONDITIONS, CheckError(problem))
        return reported_problems(self._objects.get(namespace, ()), self._heartbeats, self._clock.now())

    async def heartbeats(self) -> Mapping[str, Document]:
        """The Leases that extensions renew in the seed, by namespace. Raises GardenbusError."""
        leases = await self._api.items(_LEASES, fieldSelector=f"metadata.name={HEARTBEAT_NAME}")
        return {namespace_of(each): each for each in leases}

    async def _list(self) -> None:
        found: dict[str, list[ReportingObject]] = defaultdict(list)
        for kind in self._kinds:
            for each in await self._api.items(f"/apis/{API_VERSION}/{PLURALS[kind]}"):
                if (reports := reporting(kind, each)) is not None:
                    found[reports.namespace].append(reports)
        registrations = await self._garden.list("controllerregistration") if found else ()
        if registrations:
            installations = await self._garden.list("controllerinstallation", f"spec.seedRef.name={self._seed_name}")
            leases = await self.heartbeats()
            self._heartbeats = heartbeats_by_kind(installations, registrations, leases.values())
        else:
            self._heartbeats = {}
        self._objects, self._listed_at = found, self._clock.monotonic()
