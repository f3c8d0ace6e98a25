"""Reconciler of the MemberCluster of one agent: registers it, sends heartbeats, and lets it leave the fleet.

A report is a comparison with the observed MemberCluster: one that was lost is repeated.
"""

import asyncio
from collections.abc import Callable

import structlog

from gardenbus.agent.domain.cluster_facts import ClusterFacts, joined_patch, left_patch
from gardenbus.agent.domain.documents import uid_of
from gardenbus.agent.domain.registration import FINGERPRINT
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.clock import timestamp
from gardenbus.memberagent.backend.records import REGISTERED, Registration
from gardenbus.memberagent.clients.agent_ports import AgentPorts
from gardenbus.memberagent.domain.heartbeat_schedule import seconds_to_next
from gardenbus.memberagent.metrics import HEARTBEATS

_log = structlog.stdlib.get_logger()

RETRY_SECONDS = 5.0
"""Interval of retries, of reports without effect, and of health checks."""

QUERY_INTERVAL_SECONDS = 60.0
"""Interval of queries for a MemberCluster that the store does not have."""

DEFAULT_PERIOD_SECONDS = 60.0


class MemberClusterReconciler:
    """See the module. `enqueue_work` and `enqueue_all` request the reconciliation of a Work, or of everything."""

    def __init__(
        self, name: str, ports: AgentPorts, *, enqueue_work: Callable[[str], None], enqueue_all: Callable[[], None]
    ) -> None:
        self.source = ports.source
        self.has_ended = asyncio.Event()
        """Set once the cluster should leave and has left."""
        self._name = name
        self._key = ObjectKey("membercluster", "", name)
        self._cache = ports.cache
        self._backend = ports.backend
        self._records = ports.records
        self._reporter = ports.reporter
        self._read = ports.read
        self._landscape = ports.landscape
        self._certificate_expires_at = ports.certificate_expires_at
        self._clock = ports.clock
        self._enqueue_work = enqueue_work
        self._enqueue_all = enqueue_all
        self._heartbeat_due = 0.0
        self._applied_at = float("-inf")
        self._reported: tuple[str, ClusterFacts] | None = None
        self._left_reported_at = self._queried_at = float("-inf")
        self._is_excluded = False
        """True once it was logged that the cluster is not in the fleet."""

    def seconds_to_next(self) -> float:
        """Seconds until the next round."""
        left = self._heartbeat_due - self._clock.monotonic()
        return min(RETRY_SECONDS, left) if left > 0 else RETRY_SECONDS

    def has_new_namespaces(self) -> bool:
        """True if the backend's namespaces differ from the reported ones."""
        return self._reported is not None and self._backend.facts().namespaces != self._reported[1].namespaces

    async def reconcile(self) -> None:
        """Register the cluster, report its state, or let it leave."""
        now = self._clock.monotonic()
        manifest = self.source.manifest()
        if not self._cache.is_complete or self._backend.facts().is_silent:
            return
        if manifest is None and (self._cache.cluster_is_gone or self._cache.cluster is None):
            for work in sorted(self._backend.works()) if self._cache.cluster_is_gone else ():
                await self._backend.remove(work)
            self.has_ended.set()
        elif self._cache.is_leaving:
            await self._leave(now)
        elif self._cache.cluster is None:
            await self._register(manifest, now)
        elif manifest is None:
            if now - self._applied_at >= RETRY_SECONDS:
                self._applied_at = now
                await self._reporter.delete(self._key, uid_of(self._cache.cluster))
        else:
            self._is_excluded = False
            if self.source.registers and _fingerprint(self._cache.cluster) not in (None, _fingerprint(manifest)):
                await self._apply(manifest, now)
            await self._beat(self._cache.cluster, now)

    async def _register(self, manifest: Document | None, now: float) -> None:
        """Register the cluster, unless its MemberCluster was deleted: then people bring it back."""
        if manifest is None:
            return
        if not self._cache.cluster_is_gone and await self._was_registered(now):
            return
        if self._cache.cluster_is_gone or not self.source.registers:
            self._exclude()
            return
        await self._apply(manifest, now)

    async def _apply(self, manifest: Document, now: float) -> None:
        if now - self._applied_at < RETRY_SECONDS:
            return
        self._applied_at = now
        await self._reporter.apply(self._key, manifest)
        _log.info("cluster.registered", cluster=self._name)

    async def _was_registered(self, now: float) -> bool:
        """Read the MemberCluster of a cluster that was registered before; returns whether it was.

        Tombstones expire after an hour, so its absence from the stream does not say. Nor does its absence from the
        store, which may have been restored: the cluster is kept as it is, and queried.
        """
        before = self._records.registered()
        if before is None or (before.landscape, before.origin) != (self._landscape(), self.source.origin):
            return False
        current = await self._read(self._key)
        if current is not None and self._cache.cluster is None:
            self._cache.update(self._key, current)
            self._enqueue_all()
        elif self._cache.cluster is None:
            await self._query(before.uid, now)
        return True

    async def _query(self, uid: str, now: float) -> None:
        """Have the deletion of the MemberCluster announced again; log it as excluded if nobody remembers one."""
        if now - self._queried_at < QUERY_INTERVAL_SECONDS:
            if now - self._queried_at >= RETRY_SECONDS:
                self._exclude("the store has lost its MemberCluster: nothing in the cluster is touched")
            return
        self._queried_at = now
        await self._reporter.query(self._key, uid)

    def _exclude(self, reason: str = "its MemberCluster was deleted") -> None:
        """Log once that the cluster is not in the fleet, and what would bring it there."""
        if self._is_excluded:
            return
        self._is_excluded = True
        if self.source.registers:
            way = (
                f"apply a MemberCluster {self._name}, or remove {REGISTERED} in its directory and start its agent anew"
            )
        else:
            reason, way = "registration is Never", f"apply a MemberCluster {self._name}"
        _log.warning("cluster.excluded", cluster=self._name, reason=reason, to_bring_it_in=way)

    async def _beat(self, cluster: Document, now: float) -> None:
        """Report the status when a heartbeat is due or the facts have changed."""
        facts = self.source.facts(self._backend.facts())
        facts = facts._replace(certificate_expires_at=self._certificate_expires_at())
        if facts.is_silent or (now < self._heartbeat_due and self._reported == (uid_of(cluster), facts)):
            return
        instant = self._clock.now()
        await self._reporter.status(self._key, uid_of(cluster), joined_patch(cluster, facts, now=timestamp(instant)))
        period = float(section(cluster, "spec").get("heartbeatPeriodSeconds") or DEFAULT_PERIOD_SECONDS)
        self._heartbeat_due = now + seconds_to_next(self._name, instant.timestamp(), period)
        self._reported = (uid_of(cluster), facts)
        HEARTBEATS.inc()
        self._records.register(Registration(self._landscape(), self.source.origin, uid_of(cluster)))

    async def _leave(self, now: float) -> None:
        """Remove everything from the cluster, and report that once nothing is left."""
        problems = [each for work in sorted(self._backend.works()) if (each := await self._backend.remove(work))]
        for name in self._cache.works:
            self._enqueue_work(name)
        self._reported = None
        self._heartbeat_due = now + RETRY_SECONDS
        if problems:
            _log.warning("cluster.kept", cluster=self._name, reason=problems[0])
            return
        if now - self._left_reported_at >= RETRY_SECONDS and self._cache.cluster is not None:
            self._left_reported_at = now
            patch = left_patch(self._cache.cluster, now=timestamp(self._clock.now()))
            await self._reporter.status(self._key, uid_of(self._cache.cluster), patch)
            _log.info("cluster.left", cluster=self._name)


def _fingerprint(document: Document) -> object:
    return section(document, "metadata", "annotations").get(FINGERPRINT)
