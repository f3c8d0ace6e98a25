"""One process that hosts the agents of many clusters: those that are configured, and Seeds that are enrolled.

All share the connection and the followers of OBJECTS: one consumer for up to a hundred clusters. Where Seeds are
enrolled one more consumer tells of Seeds, and of everything about clusters, because any cluster may become ours.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec
import structlog

from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.bus import Bus, Delivered, FollowRestarted, ReplayDone
from gardenbus.common.ports.clock import Clock
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.keys import Header, ObjectKey, Subjects
from gardenbus.common.resources.member_clusters import CLUSTER_NAMESPACE_PREFIX, namespace_of
from gardenbus.memberagent.backend.local import LocalBackend
from gardenbus.memberagent.decide.configuration import BackendSettings, ClusterSettings, MemberAgentConfiguration
from gardenbus.memberagent.decide.enrolling import SEED_ANNOTATION
from gardenbus.memberagent.reconcilers.agent import Agent
from gardenbus.memberagent.reconcilers.reading import reading
from gardenbus.memberagent.reconcilers.reports import Reporter
from gardenbus.memberagent.reconcilers.source import Configured, Enrolled, Source
from gardenbus.memberagent.reconcilers.told import Told

_log = structlog.stdlib.get_logger()

OBJECTS = "OBJECTS"
CLUSTERS_A_FOLLOWER = 100

_PAUSE_SECONDS = 1.0
_decode = msgspec.json.Decoder(dict[str, object]).decode


class Host:
    """All agents of one process."""

    def __init__(
        self,
        configurations: Sequence[MemberAgentConfiguration],
        *,
        bus: Bus,
        subjects: Subjects,
        clock: Clock,
        state_directory: Path,
    ) -> None:
        self._bus = bus
        self._subjects = subjects
        self._clock = clock
        self._directory = state_directory
        self._read = reading(bus, subjects)
        self._enrolling = next((each for each in configurations if each.enrol_seeds), None)
        self._told: dict[str, Told] = {}
        self._seeds: set[str] = set()
        self._tasks: asyncio.TaskGroup | None = None
        self._running: dict[str, asyncio.Task[None]] = {}
        self._replayed: set[int] = set()
        self._has_told_all = False
        """Whether the follower of everything has told what the stream holds."""
        self._followers = 0
        self._landscape = ""
        """When OBJECTS was made: by this landscapes are told apart."""
        self.agents: dict[str, Agent] = {}
        for configuration in configurations:
            for cluster in configuration.clusters:
                period = configuration.heartbeat_period_seconds
                registers = configuration.registration != "Never"
                source = Configured(cluster, period_seconds=period, registers=registers)
                self._admit(cluster.name, source, configuration.backend, cluster)

    @property
    def is_told(self) -> bool:
        """Whether every follower has told once what the stream holds."""
        return self._followers > 0 and len(self._replayed) == self._followers

    async def run(self) -> None:
        """Listen and live, until cancelled."""
        configured = sorted(self.agents)
        async with asyncio.TaskGroup() as self._tasks:
            for name in configured:
                self._start(name)
            if self._enrolling is not None:
                self._follow_as(0, self._all_filters(), None)
                return
            for number, start in enumerate(range(0, len(configured), CLUSTERS_A_FOLLOWER)):
                clusters = configured[start : start + CLUSTERS_A_FOLLOWER]
                self._follow_as(number, self._filters(clusters), frozenset(clusters))

    # ------------------------------------------------------------------------------------------ coming and going

    def _admit(
        self, name: str, source: Source, settings: BackendSettings, cluster: ClusterSettings | None = None
    ) -> Agent:
        backend = LocalBackend(
            self._directory / name,
            settings,
            self._clock,
            cluster=name,
            failures=cluster.failure_requests if cluster is not None else (),
            namespaces=cluster.namespaces if cluster is not None else (),
        )
        agent = self.agents[name] = Agent(
            name,
            source=source,
            told=self._told_of(name),
            backend=backend,
            reporter=Reporter(bus=self._bus, subjects=self._subjects, cluster=name),
            read=self._read,
            landscape=lambda: self._landscape,
            clock=self._clock,
        )
        return agent

    def _start(self, name: str) -> None:
        assert self._tasks is not None
        self._running[name] = self._tasks.create_task(self._run_agent(name), name=f"agent {name}")

    async def _run_agent(self, name: str) -> None:
        """Run an agent until its cluster has left for good."""
        agent = self.agents[name]
        running = asyncio.create_task(agent.run(), name=f"agent {name} itself")
        ended = asyncio.create_task(agent.has_ended.wait(), name=f"end of agent {name}")
        try:
            done, _ = await asyncio.wait({running, ended}, return_when=asyncio.FIRST_COMPLETED)
            if running in done:
                running.result()
        finally:
            running.cancel()
            ended.cancel()
            await asyncio.gather(running, ended, return_exceptions=True)
        del self.agents[name], self._running[name]
        _log.info("agent.ended", cluster=name)

    def _seed_changed(self, name: str, seed: Document | None) -> None:
        """Enrol a Seed, follow its changes, or have it leave."""
        if self._enrolling is None:
            return
        (self._seeds.discard if seed is None else self._seeds.add)(name)
        agent = self.agents.get(name)
        if agent is None:
            if seed is not None:
                self._enrol(name, seed)
            return
        if not isinstance(agent.source, Enrolled):
            return
        agent.source.seed = seed
        agent.cluster_changed()

    def _enrol(self, name: str, seed: Document | None) -> None:
        assert self._enrolling is not None
        source = Enrolled(seed, period_seconds=self._enrolling.heartbeat_period_seconds)
        self._admit(name, source, self._enrolling.backend).look_at_all()
        self._start(name)
        _log.info("seed.enrolled", seed=name, leaves=seed is None)

    async def _withdraw_lost_seeds(self) -> None:
        """Have clusters leave that were Seeds which went while nobody looked."""
        for name, told in tuple(self._told.items()):
            if told.cluster is None or name in self._seeds or name in self.agents:
                continue
            if section(told.cluster, "metadata", "annotations").get(SEED_ANNOTATION) != name:
                continue
            if await self._read(ObjectKey("seed", "", name)) is None:
                self._enrol(name, None)

    # ------------------------------------------------------------------------------------------ listening

    def _filters(self, clusters: Sequence[str]) -> list[str]:
        return [
            each
            for name in clusters
            for each in (
                self._subjects.changed(ObjectKey("membercluster", "", name)),
                self._subjects.changed_kind("work", namespace_of(name)),
            )
        ]

    def _all_filters(self) -> list[str]:
        return [self._subjects.changed_kind(kind) for kind in ("membercluster", "work", "seed")]

    def _follow_as(self, number: int, filters: Sequence[str], clusters: frozenset[str] | None) -> None:
        assert self._tasks is not None
        self._followers += 1
        self._tasks.create_task(self._follow(number, filters, clusters), name=f"objects {number}")

    async def _follow(self, number: int, filters: Sequence[str], clusters: frozenset[str] | None) -> None:
        """Follow what concerns some clusters (None: all there may be)."""
        while True:
            self._replay_began(clusters)
            try:
                stream = self._subjects.stream(OBJECTS)
                async with self._bus.follow(stream, filters, last_per_subject=True) as follower:
                    async for event in follower:
                        if isinstance(event, Delivered):
                            await self._deliver(event)
                        elif isinstance(event, ReplayDone):
                            self._landscape = str((await self._bus.position(stream)).created)
                            await self._replay_ended(number, clusters)
                        else:
                            _restarted(event)
                            self._replay_began(clusters)
            except GardenbusError as error:
                _log.warning("objects.interrupted", reason=error.message)
            await self._clock.sleep(_PAUSE_SECONDS)

    async def _deliver(self, event: Delivered) -> None:
        """Take in what an object is now. Raises Unavailable where it was too large to be told and cannot be read."""
        if event.marker is not None:
            return
        key = ObjectKey.from_tail(event.subject.removeprefix(f"{self._subjects.prefix}.changed."))
        document: Document | None = None
        if event.headers.get(Header.VERB) != "deleted":
            try:
                document = await self._read(key) if Header.TOO_LARGE in event.headers else _decode(event.body)
            except msgspec.DecodeError as error:
                _log.warning("object.unreadable", subject=event.subject, reason=str(error))
                return
        if key.kind == "seed":
            self._seed_changed(key.name, document)
            return
        cluster = key.name if key.kind == "membercluster" else key.namespace.removeprefix(CLUSTER_NAMESPACE_PREFIX)
        told = self._told_of(cluster)
        was_there, before = told.cluster is not None, _aim(told.works.get(key.name))
        told.take(key, document)
        agent = self.agents.get(cluster)
        if agent is None:
            return
        if key.kind == "work":
            agent.work_changed(key.name, is_urgent=_aim(document) != before)
        elif was_there and told.cluster is not None and not told.is_leaving:
            agent.cluster_changed()
        else:
            agent.look_at_all()

    def _told_of(self, cluster: str) -> Told:
        """What was told of a cluster; of one that nobody spoke of that is nothing, and all there is."""
        if cluster not in self._told:
            self._told[cluster] = Told(is_complete=self._has_told_all)
        return self._told[cluster]

    def _replay_began(self, clusters: frozenset[str] | None) -> None:
        self._has_told_all = False
        for name, told in self._told.items():
            if clusters is None or name in clusters:
                told.replay_began()

    async def _replay_ended(self, number: int, clusters: frozenset[str] | None) -> None:
        for name, told in self._told.items():
            if clusters is None or name in clusters:
                told.replay_ended()
        if self._enrolling is not None:
            self._has_told_all = True
            await self._withdraw_lost_seeds()
        for name in clusters if clusters is not None else tuple(self.agents):
            if name in self.agents:
                self.agents[name].look_at_all()
        self._replayed.add(number)


def _aim(work: Document | None) -> object:
    """What of a Work says what is to be done; its status does not."""
    metadata = section(work or {}, "metadata")
    return metadata.get("uid"), metadata.get("generation"), metadata.get("deletionTimestamp")


def _restarted(event: FollowRestarted) -> None:
    _log.warning("objects.restarted", reason=event.reason)
