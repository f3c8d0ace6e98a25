"""One agent of one cluster: its reconcilers, active while it holds the cluster's backend."""

import asyncio

import structlog

from gardenbus.agent.activity import Activity
from gardenbus.agent.work_loop import WorkLoop
from gardenbus.common.controller.delaying_queue import DelayingQueue
from gardenbus.common.errors import GardenbusError, Unavailable
from gardenbus.memberagent.clients.agent_ports import AgentPorts
from gardenbus.memberagent.controllers.member_cluster import RETRY_SECONDS, MemberClusterReconciler
from gardenbus.memberagent.controllers.works import WorkApplier

_log = structlog.stdlib.get_logger()

STANDBY_SECONDS = 1.0
"""Interval at which a standby tries to become active."""


class MemberClusterAgent:
    """See the module."""

    def __init__(self, name: str, ports: AgentPorts) -> None:
        backend, clock = ports.backend, ports.clock
        self.name = name
        self.cache = ports.cache
        self.activity = Activity()
        self._backend = backend
        self._records = ports.records
        self._clock = clock
        self.cluster = MemberClusterReconciler(
            name, ports, enqueue_work=self.work_changed, enqueue_all=self.enqueue_all
        )
        self.works = WorkApplier(
            name, cache=ports.cache, backend=backend, reporter=ports.reporter, read=ports.read, clock=clock
        )
        self._cluster_loop = WorkLoop("cluster", self.cluster.reconcile, self.cluster.seconds_to_next, cluster=name)
        self._backend_loop = WorkLoop("backend", backend.run, lambda: RETRY_SECONDS, cluster=name)
        self._queue = DelayingQueue(
            self._reconcile_work,
            clock=clock,
            controller="work",
            describe=lambda work: f"{name}/{work}",
            retry_seconds=RETRY_SECONDS,
            expected=(GardenbusError, OSError),
        )

    @property
    def is_active(self) -> bool:
        """True while it holds the cluster's backend."""
        return self.activity.is_on

    def cluster_changed(self) -> None:
        """Reconcile the cluster now."""
        self._cluster_loop.trigger()

    def work_changed(self, name: str, *, is_urgent: bool = True) -> None:
        """Reconcile a Work: now, or soon if only its status has changed (most likely by our report)."""
        self._queue.add(name, 0.0 if is_urgent else RETRY_SECONDS)

    def enqueue_all(self) -> None:
        """Reconcile the cluster, all cached Works, and those in the cluster."""
        for name in {*self.cache.works, *self._works_in_cluster()}:
            self._queue.add(name)
        self._cluster_loop.trigger()

    def _works_in_cluster(self) -> set[str]:
        """Works with objects in the cluster; none while that is not yet read: the backend requests them then."""
        try:
            return self._backend.works() if self.is_active else set()
        except Unavailable:
            return set()

    async def run(self) -> None:
        """Run until cancelled, or until the cluster has left the fleet; no failure ends it."""
        running = asyncio.create_task(self._run(), name=f"agent {self.name}")
        ended = asyncio.create_task(self.cluster.has_ended.wait(), name=f"end of agent {self.name}")
        try:
            done, _ = await asyncio.wait({running, ended}, return_when=asyncio.FIRST_COMPLETED)
            if running in done:
                running.result()
        finally:
            running.cancel()
            ended.cancel()
            await asyncio.gather(running, ended, return_exceptions=True)

    async def _run(self) -> None:
        try:
            while not await self._acquired():
                await self._clock.sleep(STANDBY_SECONDS)
            self.activity.begin()
            self.enqueue_all()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._backend_loop.run(), name=f"backend of {self.name}")
                tasks.create_task(self._cluster_loop.run(), name=f"cluster {self.name}")
                tasks.create_task(self._queue.run(), name=f"works of {self.name}")
        finally:
            self.activity.end()
            await self._backend.stop()
            self._records.release()

    async def _acquired(self) -> bool:
        """Become active for the cluster; False while another process is, or the backend cannot start."""
        try:
            if not self._records.acquire():
                return False
            await self._backend.start()
        except (GardenbusError, OSError) as error:
            _log.warning("cluster.delayed", cluster=self.name, reason=str(error))
            self._records.release()
            return False
        return True

    async def _reconcile_work(self, name: str) -> float | None:
        try:
            return await self.works.reconcile(name)
        finally:
            if self.cluster.has_new_namespaces():
                self._cluster_loop.trigger()
