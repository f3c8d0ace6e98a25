"""Defragmentation of the etcds of all control planes of a seed, in the maintenance windows of their shoots.

An etcd that is defragmented responds to nobody meanwhile. So it is done for one control plane at a time, between its
steps, and only while all of its components are healthy. One that fails, or is not healthy, is tried again as long as
the window is open.
"""

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from pathlib import Path

import structlog

from gardenbus.common.api.garden.maintenance_windows import effective_window
from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.clock import Clock
from gardenbus.gardenlet.backend.port import StaleFencingToken
from gardenbus.gardenlet.backend.processes.cluster import Cluster
from gardenbus.gardenlet.backend.processes.probes import ProbeSession
from gardenbus.gardenlet.domain.control_plane import ETCDS
from gardenbus.gardenlet.domain.defragmentation import is_defragmentation_due
from gardenbus.gardenlet.metrics import ETCD_DEFRAGMENTATIONS

_log = structlog.stdlib.get_logger()

CHECK_INTERVAL_SECONDS = 60.0
AGAIN_SECONDS = 300.0
"""Pause after a defragmentation that failed."""


class EtcdDefragmentation:
    """See the module. `owned` raises StaleFencingToken once another gardenlet has acquired the seed."""

    def __init__(self, session: ProbeSession, clock: Clock, owned: Callable[[], AbstractContextManager[None]]) -> None:
        self._session = session
        self._clock = clock
        self._owned = owned
        self._again_at: dict[Path, float] = {}

    async def keep(self, clusters: Callable[[], Collection[Cluster]]) -> None:
        """Defragment what is due, until cancelled or another gardenlet acquires the seed."""
        while True:
            try:
                await self.defragment_due(clusters())
            except StaleFencingToken:
                return
            await self._clock.sleep(CHECK_INTERVAL_SECONDS)

    async def defragment_due(self, clusters: Collection[Cluster]) -> None:
        """Defragment what is due now. Raises StaleFencingToken."""
        now = self._clock.monotonic()
        self._again_at = {directory: at for directory, at in self._again_at.items() if at > now}
        for cluster in clusters:
            due = () if cluster.directory in self._again_at or cluster.busy.locked() else self._due(cluster)
            if due:
                async with cluster.busy:
                    await self._defragment(cluster, due)

    def _due(self, cluster: Cluster) -> tuple[str, ...]:
        """The etcds of a control plane that are due."""
        state, entry, now = cluster.state, cluster.directory.name, self._clock.now()
        if state is None:
            return ()
        window = effective_window({"maintenance": state.maintenance}, entry)
        return tuple(
            name
            for name in ETCDS
            if name in state.running
            and is_defragmentation_due(state.defragmented_at.get(name), now, window, f"{entry}/{name}")
        )

    async def _defragment(self, cluster: Cluster, due: Collection[str]) -> None:
        for name in due:
            if not await self._is_healthy(cluster):
                return
            with self._owned():
                pass
            try:
                etcd = self._session.etcd(cluster, name)
                before = await etcd.database_bytes()
                await etcd.defragment()
                after = await etcd.database_bytes()
                cluster.note_defragmented(name, self._clock.now())
            except StaleFencingToken:
                raise
            except (GardenbusError, OSError) as error:
                if cluster.child(name) is None:
                    return  # it was ended meanwhile
                self._again_at[cluster.directory] = self._clock.monotonic() + AGAIN_SECONDS
                ETCD_DEFRAGMENTATIONS.labels("failed").inc()
                reason = error.message if isinstance(error, GardenbusError) else str(error)
                _log.warning("etcd.not_defragmented", shoot=cluster.directory.name, component=name, reason=reason)
                return
            ETCD_DEFRAGMENTATIONS.labels("done").inc()
            _log.info(
                "etcd.defragmented", shoot=cluster.directory.name, component=name, bytes=after, bytes_before=before
            )

    async def _is_healthy(self, cluster: Cluster) -> bool:
        if cluster.state is None or cluster.has_lost_data:
            return False
        running = cluster.components(cluster.state.running)
        return not any([await self._session.component_problem(cluster, each) for each in running])
