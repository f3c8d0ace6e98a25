"""Reconciler of the Works of one cluster: applies their manifests and reports their status."""

import random
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field

import structlog

from gardenbus.agent.domain.documents import mappings, uid_of
from gardenbus.agent.kubernetes.errors import Throttled
from gardenbus.agent.reporter import Reporter
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.apply_strategies import only_compares, strategy_of
from gardenbus.common.api.fleet.member_clusters import namespace_of
from gardenbus.common.api.fleet.works import is_abandoned
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.backoff import Backoff
from gardenbus.common.errors import Forbidden, Unavailable
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.memberagent.backend.port import ClusterBackend
from gardenbus.memberagent.clients.object_reader import ReadObject
from gardenbus.memberagent.controllers.member_cluster import RETRY_SECONDS
from gardenbus.memberagent.domain.work_status import (
    ManifestResult,
    cleaned_up_status,
    status_includes,
    status_of,
    stuck_status,
)
from gardenbus.memberagent.metrics import APPLIED
from gardenbus.memberagent.watch.cluster_cache import ClusterCache

QUERY_INTERVAL_SECONDS = 60.0

_log = structlog.stdlib.get_logger()


_BACKOFF = Backoff(base_seconds=RETRY_SECONDS, cap_seconds=120.0)
"""Of Works that are not applied, or whose cluster is unreachable: 2.5 to 5 s at first."""


@dataclass(eq=False)
class WorkApplier:
    """See the module."""

    cluster: str
    _: KW_ONLY
    cache: ClusterCache
    backend: ClusterBackend
    reporter: Reporter
    read: ReadObject
    clock: Clock
    _failures: dict[str, tuple[object, int]] = field(default_factory=dict[str, tuple[object, int]], init=False)
    """By Work: the generation that failed, and how often one after the other."""

    async def reconcile(self, name: str) -> float | None:
        """Apply a Work and report; returns the seconds after which to requeue, None for not before a change.

        A cluster that is unreachable, or throttles, is tried again after longer and longer pauses.
        """
        try:
            return await self._reconcile(name)
        except (Unavailable, Forbidden) as error:
            pause = max(self._pause(name), error.retry_after_seconds if isinstance(error, Throttled) else 0.0)
            _log.warning("work.delayed", cluster=self.cluster, work=name, reason=error.message, again_in=round(pause))
            return pause

    def _pause(self, name: str) -> float:
        """Seconds until the next try of a Work that has failed once more."""
        generation = section(self.cache.works.get(name) or {}, "metadata").get("generation")
        before, count = self._failures.get(name, (generation, 0))
        count = count + 1 if before == generation else 1
        self._failures[name] = (generation, count)
        return _BACKOFF.delay_seconds(count, random.random())

    async def _reconcile(self, name: str) -> float | None:
        if not self.cache.is_complete:
            return None
        if self.backend.facts().is_silent:
            return RETRY_SECONDS
        work = self.cache.works.get(name)
        if work is None:
            self._failures.pop(name, None)
            return await self._remove(name)
        is_deleting = bool(section(work, "metadata").get("deletionTimestamp"))
        now = timestamp(self.clock.now())
        if is_deleting or self.cache.is_leaving or self.cache.cluster_is_gone:
            release = self.backend.abandon if is_deleting and is_abandoned(work) else self.backend.remove
            problem = await release(name)
            if not is_deleting:
                return None
            patch = cleaned_up_status(work, now=now) if problem is None else stuck_status(work, problem, now=now)
            return await self._report(name, work, patch, RETRY_SECONDS if problem else None)
        if self.cache.cluster is None:
            return RETRY_SECONDS
        manifests = mappings(section(work, "spec", "workload"), "manifests")
        perform = self.backend.compare if only_compares(work) else self.backend.apply
        applied = await perform(name, manifests, strategy_of(work))
        failed = any(not outcome.applied or outcome.available is False for outcome in applied.outcomes)
        _count(applied.outcomes)
        requeue_after = applied.requeue_after_seconds
        if not failed:
            self._failures.pop(name, None)
        elif requeue_after is None and not only_compares(work):
            requeue_after = self._pause(name)
        return await self._report(name, work, status_of(work, applied.outcomes, now=now), requeue_after)

    async def _report(self, name: str, work: Document, patch: Document, requeue_after: float | None) -> float | None:
        """Report a status that differs from the observed one; then requeue to see its effect."""
        if status_includes(work, patch):
            return requeue_after
        await self.reporter.status(ObjectKey("work", namespace_of(self.cluster), name), uid_of(work), patch)
        return RETRY_SECONDS if requeue_after is None else min(requeue_after, RETRY_SECONDS)

    async def _remove(self, name: str) -> float | None:
        """Remove a deleted Work from the cluster; one of which only nothing is known is kept, and queried."""
        if name not in self.backend.works():
            return None
        if self.cache.cluster_is_gone or name in self.cache.removed_works:
            problem = await self.backend.remove(name)
            _log.info("work.removed", cluster=self.cluster, work=name)
            return RETRY_SECONDS if problem else None
        current = await self.read(ObjectKey("work", namespace_of(self.cluster), name))
        if current is not None and name not in self.cache.works:
            self.cache.works[name] = current
            return 0.0
        if name in self.cache.works:
            return 0.0
        key = ObjectKey("work", namespace_of(self.cluster), name)
        await self.reporter.query(key, held={"kind": "Work", "metadata": {"name": name, "namespace": key.namespace}})
        _log.warning("work.unknown", cluster=self.cluster, work=name)
        return QUERY_INTERVAL_SECONDS


def _count(outcomes: Sequence[ManifestResult]) -> None:
    if any(not outcome.applied for outcome in outcomes):
        result = "failed"
    else:
        result = "waiting" if any(outcome.available is False for outcome in outcomes) else "available"
    APPLIED.labels(result).inc()
