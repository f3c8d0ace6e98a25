"""One agent of one cluster: keeps its MemberCluster, applies the Works addressed to it, and reports.

What is said is always a comparison with what was told: a report that was lost is said again.
"""

import asyncio
from collections.abc import Callable, Sequence

import structlog

from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.member_clusters import namespace_of
from gardenbus.memberagent.backend.port import REGISTERED, Backend, Registration
from gardenbus.memberagent.decide.beats import seconds_to_next
from gardenbus.memberagent.decide.configuration import FINGERPRINT
from gardenbus.memberagent.decide.facts import Facts, joined_patch, left_patch
from gardenbus.memberagent.decide.listed import mappings
from gardenbus.memberagent.decide.works import (
    Outcome,
    cleaned_up_status,
    only_compares,
    says_already,
    status_of,
    stuck_status,
)
from gardenbus.memberagent.reconcilers.counters import APPLIED, HEARTBEATS
from gardenbus.memberagent.reconcilers.reading import Read
from gardenbus.memberagent.reconcilers.reports import Reporter
from gardenbus.memberagent.reconcilers.source import Source
from gardenbus.memberagent.reconcilers.told import Told

_log = structlog.stdlib.get_logger()

STANDBY_SECONDS = 1.0
"""How often a standby looks whether the cluster has nobody to speak for it."""

RETRY_SECONDS = 5.0
"""After which what failed is tried again, a report that shows no effect is repeated, and health is looked at."""

DEFAULT_PERIOD_SECONDS = 60.0


class Agent:
    """See the module."""

    def __init__(  # noqa: PLR0913 - the ports of one agent
        self,
        name: str,
        *,
        source: Source,
        told: Told,
        backend: Backend,
        reporter: Reporter,
        read: Read,
        landscape: Callable[[], str],
        clock: Clock,
    ) -> None:
        self.name = name
        self.source = source
        self.told = told
        self.is_active = False
        self.has_ended = asyncio.Event()
        """Set when the cluster shall leave and has left."""
        self._backend = backend
        self._reporter = reporter
        self._read = read
        self._landscape = landscape
        self._clock = clock
        self._key = ObjectKey("membercluster", "", name)
        self._due: dict[str, float] = {}
        self._news = asyncio.Event()
        self._cluster_news = asyncio.Event()
        self._heartbeat_due = 0.0
        self._applied_at = float("-inf")
        self._said: tuple[str, Facts] | None = None
        self._left_said_at = float("-inf")
        self._is_out = False
        """Whether it was said that the cluster is not in the fleet, and what would bring it there."""

    # ------------------------------------------------------------------------------------------ listening

    def cluster_changed(self) -> None:
        """Look at the cluster, and at all Works: whether they are to be here may depend on it."""
        self._cluster_news.set()

    def work_changed(self, name: str, *, is_urgent: bool = True) -> None:
        """Look at a Work: at once, or soon where nothing but its status has changed (most likely by our report)."""
        if is_urgent:
            self._due[name] = 0.0
        else:
            self._due.setdefault(name, self._clock.monotonic() + RETRY_SECONDS)
        self._news.set()

    def look_at_all(self) -> None:
        """Look at the cluster, at all Works that were told, and at those that are here."""
        for name in {*self.told.works, *(self._backend.works() if self.is_active else ())}:
            self._due[name] = 0.0
        self._cluster_news.set()
        self._news.set()

    # ------------------------------------------------------------------------------------------ acting

    async def run(self) -> None:
        """Live until cancelled. Nothing that fails once ends it."""
        while not self._acquired():
            await self._clock.sleep(STANDBY_SECONDS)
        self.is_active = True
        self.look_at_all()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._keep_cluster(), name=f"cluster {self.name}")
                tasks.create_task(self._keep_works(), name=f"works of {self.name}")
        finally:
            self.is_active = False
            self._backend.release()

    def _acquired(self) -> bool:
        try:
            return self._backend.acquire()
        except OSError as error:
            _log.warning("cluster.delayed", cluster=self.name, reason=str(error))
            return False

    async def _keep_cluster(self) -> None:
        while True:
            self._cluster_news.clear()
            try:
                await self.cluster_round()
            except (GardenbusError, OSError) as error:
                _log.warning("cluster.delayed", cluster=self.name, reason=str(error))
            left = self._heartbeat_due - self._clock.monotonic()
            wait = min(RETRY_SECONDS, left) if left > 0 else RETRY_SECONDS
            try:
                async with asyncio.timeout(wait):
                    await self._cluster_news.wait()
            except TimeoutError:
                continue

    async def cluster_round(self) -> None:
        """Register the cluster, report how it is, or see it off."""
        now = self._clock.monotonic()
        manifest = self.source.manifest()
        if not self.told.is_complete or self._backend.is_silent():
            return
        if manifest is None and (self.told.cluster_is_gone or self.told.cluster is None):
            self._see_off()
        elif self.told.is_leaving:
            await self._leave(now)
        elif self.told.cluster is None:
            await self._register(manifest, now)
        elif manifest is None:
            if now - self._applied_at >= RETRY_SECONDS:
                self._applied_at = now
                await self._reporter.delete(self._key, _uid(self.told.cluster))
        else:
            self._is_out = False
            if self.source.registers and _fingerprint(self.told.cluster) not in (None, _fingerprint(manifest)):
                await self._apply(manifest, now)
            await self._beat(self.told.cluster, now)

    async def _register(self, manifest: Document | None, now: float) -> None:
        """Bring the cluster into the fleet, unless it was there and was taken out: then people bring it back."""
        if manifest is None:
            return
        if not self.told.cluster_is_gone and await self._was_registered():
            return
        if self.told.cluster_is_gone or not self.source.registers:
            self._stay_out()
            return
        await self._apply(manifest, now)

    async def _apply(self, manifest: Document, now: float) -> None:
        if now - self._applied_at < RETRY_SECONDS:
            return
        self._applied_at = now
        await self._reporter.apply(self._key, manifest)
        _log.info("cluster.registered", cluster=self.name)

    async def _was_registered(self) -> bool:
        """Ask for a cluster that was in this fleet and of which nothing was told; whether it is in it still.

        That it was removed is told for an hour only, to those who listen.
        """
        before = self._backend.registered()
        if before is None or (before.landscape, before.origin) != (self._landscape(), self.source.origin):
            return False
        there = await self._read(self._key)
        if self.told.cluster is None:
            self.told.take(self._key, there)
            self.look_at_all()
        return self.told.cluster is not None

    def _stay_out(self) -> None:
        """Say once that the cluster is not in the fleet, and what would bring it there."""
        if self._is_out:
            return
        self._is_out = True
        if self.source.registers:
            reason = "its MemberCluster was deleted"
            way = f"apply a MemberCluster {self.name}, or remove {REGISTERED} in its directory and start its agent anew"
        else:
            reason, way = "registration is Never", f"apply a MemberCluster {self.name}"
        _log.warning("cluster.omitted", cluster=self.name, reason=reason, to_bring_it_in=way)

    async def _beat(self, cluster: Document, now: float) -> None:
        """Report when a heartbeat is due, or something else is to be said."""
        facts = self.source.facts(self._backend)
        if facts.is_silent or (now < self._heartbeat_due and self._said == (_uid(cluster), facts)):
            return
        instant = self._clock.now()
        await self._reporter.status(self._key, _uid(cluster), joined_patch(cluster, facts, now=timestamp(instant)))
        period = float(section(cluster, "spec").get("heartbeatPeriodSeconds") or DEFAULT_PERIOD_SECONDS)
        self._heartbeat_due = now + seconds_to_next(self.name, instant.timestamp(), period)
        self._said = (_uid(cluster), facts)
        HEARTBEATS.inc()
        self._backend.register(Registration(self._landscape(), self.source.origin, _uid(cluster)))

    async def _leave(self, now: float) -> None:
        """Take everything off, and say so once nothing is left."""
        problems = [problem for work in sorted(self._backend.works()) if (problem := self._backend.remove(work))]
        for name in self.told.works:
            self._due.setdefault(name, 0.0)
        self._news.set()
        self._said = None
        self._heartbeat_due = now + RETRY_SECONDS
        if problems:
            _log.warning("cluster.kept", cluster=self.name, reason=problems[0])
            return
        if now - self._left_said_at >= RETRY_SECONDS and self.told.cluster is not None:
            self._left_said_at = now
            patch = left_patch(self.told.cluster, now=timestamp(self._clock.now()))
            await self._reporter.status(self._key, _uid(self.told.cluster), patch)
            _log.info("cluster.left", cluster=self.name)

    def _see_off(self) -> None:
        for work in sorted(self._backend.works()):
            self._backend.remove(work)
        self.has_ended.set()

    # ------------------------------------------------------------------------------------------ works

    async def _keep_works(self) -> None:
        while True:
            self._news.clear()
            now = self._clock.monotonic()
            for name in [name for name, due in self._due.items() if due <= now]:
                del self._due[name]
                try:
                    again = await self.work_round(name)
                except (GardenbusError, OSError) as error:
                    _log.warning("work.delayed", cluster=self.name, work=name, reason=str(error))
                    again = RETRY_SECONDS
                if again is not None:
                    self._due.setdefault(name, self._clock.monotonic() + again)
            self._cluster_news_if_changed()
            wait = min(self._due.values(), default=None)
            try:
                async with asyncio.timeout(None if wait is None else max(0.0, wait - self._clock.monotonic())):
                    await self._news.wait()
            except TimeoutError:
                continue

    async def work_round(self, name: str) -> float | None:
        """Have the cluster hold what a Work says, and report; answers the seconds until it is looked at again."""
        if not self.told.is_complete:
            return None
        if self._backend.is_silent():
            return RETRY_SECONDS
        work = self.told.works.get(name)
        if work is None:
            return await self._take_off(name)
        is_deleting = bool(section(work, "metadata").get("deletionTimestamp"))
        now = timestamp(self._clock.now())
        if is_deleting or self.told.is_leaving or self.told.cluster_is_gone:
            problem = self._backend.remove(name)
            if not is_deleting:
                return None
            patch = cleaned_up_status(work, now=now) if problem is None else stuck_status(work, problem, now=now)
            return await self._say(name, work, patch, RETRY_SECONDS if problem else None)
        if self.told.cluster is None:
            return RETRY_SECONDS
        manifests = mappings(section(work, "spec", "workload"), "manifests")
        applied = (
            self._backend.compare(manifests) if only_compares(work) else await self._backend.apply(name, manifests)
        )
        failed = any(not outcome.applied or outcome.available is False for outcome in applied.outcomes)
        _count(applied.outcomes)
        again = applied.look_again_seconds
        if again is None and failed and not only_compares(work):
            again = RETRY_SECONDS
        return await self._say(name, work, status_of(work, applied.outcomes, now=now), again)

    async def _say(self, name: str, work: Document, patch: Document, again: float | None) -> float | None:
        """Report a status unless it is there already; then look again whether it has come."""
        if says_already(work, patch):
            return again
        await self._reporter.status(ObjectKey("work", namespace_of(self.name), name), _uid(work), patch)
        return RETRY_SECONDS if again is None else min(again, RETRY_SECONDS)

    async def _take_off(self, name: str) -> float | None:
        """Take a Work off of which nothing was told; what the stream has lost is asked for first."""
        if name not in self._backend.works():
            return None
        there = await self._read(ObjectKey("work", namespace_of(self.name), name))
        if there is not None and name not in self.told.works:
            self.told.works[name] = there
            return 0.0
        if name in self.told.works:
            return 0.0
        problem = self._backend.remove(name)
        _log.info("work.removed", cluster=self.name, work=name)
        return RETRY_SECONDS if problem else None

    def _cluster_news_if_changed(self) -> None:
        """Have new namespaces reported at once."""
        if self._said is not None and self._backend.namespaces() != self._said[1].namespaces:
            self._cluster_news.set()


def _uid(document: Document) -> str:
    return str(section(document, "metadata").get("uid") or "")


def _fingerprint(document: Document) -> object:
    return section(document, "metadata", "annotations").get(FINGERPRINT)


def _count(outcomes: Sequence[Outcome]) -> None:
    if any(not outcome.applied for outcome in outcomes):
        result = "failed"
    else:
        result = "waiting" if any(outcome.available is False for outcome in outcomes) else "available"
    APPLIED.labels(result).inc()
