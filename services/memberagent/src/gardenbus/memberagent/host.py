"""A process that hosts the agents of many clusters: configured ones, and enrolled Seeds.

All share the connection and the followers of OBJECTS, but for agents with credentials of their own
(`agent.connections`): such a one follows its cluster alone, while it is active. Where Seeds are enrolled a single
follower observes Seeds, and every MemberCluster and Work, because any cluster may become one of this process.
"""

import asyncio
from collections.abc import Collection, Coroutine, Sequence
from functools import partial
from typing import Any

import msgspec
import structlog

from gardenbus.agent.activity import Activity
from gardenbus.agent.connections import OwnConnection
from gardenbus.agent.domain.enrolment import SEED_ANNOTATION
from gardenbus.agent.domain.rotation import is_renewal_demanded
from gardenbus.agent.follower import follow_last
from gardenbus.agent.host import AgentHost, HostPorts, connect, in_chunks
from gardenbus.agent.reporter import Reporter
from gardenbus.common.api.configuration.member_agent import (
    ClusterSettings,
    MemberAgentConfiguration,
    MemberBackendSettings,
)
from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.member_clusters import CLUSTER_NAMESPACE_PREFIX, namespace_of, reporter_of
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import Header, ObjectKey
from gardenbus.common.ports.bus import Bus, StreamMessage
from gardenbus.memberagent.agent import MemberClusterAgent
from gardenbus.memberagent.backend.installed import new_backend
from gardenbus.memberagent.backend.port import BackendContext
from gardenbus.memberagent.backend.records import ClusterRecords
from gardenbus.memberagent.clients.agent_ports import AgentPorts
from gardenbus.memberagent.clients.object_reader import ReadObject, object_reader
from gardenbus.memberagent.clients.shoot_kubeconfigs import shoot_kubeconfig
from gardenbus.memberagent.domain.cluster_sources import ClusterSource, ConfiguredCluster, EnrolledSeed
from gardenbus.memberagent.metrics import REPORTS
from gardenbus.memberagent.watch.cluster_cache import ClusterCache

_log = structlog.stdlib.get_logger()

OBJECTS = "OBJECTS"
_decode = json_decoder(dict[str, object])


class MemberAgentHost(AgentHost):
    """All member agents of one process."""

    def __init__(self, configurations: Sequence[MemberAgentConfiguration], ports: HostPorts) -> None:
        super().__init__(ports)
        self._read = object_reader(ports.bus, ports.subjects)
        self._readers: dict[str, ReadObject] = {}
        self._own: dict[str, OwnConnection] = {}
        self._enrolling = next((each for each in configurations if each.enrol_seeds), None)
        self._caches: dict[str, ClusterCache] = {}
        self._seeds: set[str] = set()
        self._removed_seeds: set[str] = set()
        self._consumers: list[_ObjectConsumer] = []
        self._all_replayed = False
        """True while the follower of all clusters has replayed the whole stream."""
        self._landscape = ""
        """Creation time of OBJECTS, which identifies the landscape."""
        self.agents: dict[str, MemberClusterAgent] = {}
        for configuration in configurations:
            for cluster in configuration.clusters:
                period = configuration.heartbeat_period_seconds
                registers = configuration.registration != "Never"
                source = ConfiguredCluster(cluster, period_seconds=period, registers=registers)
                self._create(cluster.name, source, configuration.backend, cluster)

    @property
    def is_synced(self) -> bool:
        """True once every follower has replayed its part of the stream."""
        return bool(self._consumers) and all(each.is_synced for each in self._consumers)

    @property
    def connection_problem(self) -> str | None:
        """Reason why an agent with a connection of its own cannot work."""
        return "; ".join(problem for each in self._own.values() if (problem := each.problem)) or None

    async def close(self) -> None:
        """Close the agents' own connections. `run` must have ended."""
        await asyncio.gather(*(each.close() for each in self._own.values()))

    def _start_agents(self) -> None:
        configured = sorted(self.agents)
        for name in configured:
            self._start(name)
        if self._enrolling is not None:
            self._follow([self._subjects.changed_kind(kind) for kind in ("membercluster", "work", "seed")], None)
            return
        for name, connection in self._own.items():
            self._follow_alone(name, connection.bus)
        for clusters in in_chunks([name for name in configured if name not in self._own]):
            filters = [each for name in clusters for each in self._filters(name)]
            self._follow(filters, frozenset(clusters))

    def _filters(self, cluster: str) -> Sequence[str]:
        return (
            self._subjects.changed(ObjectKey("membercluster", "", cluster)),
            self._subjects.changed_kind("work", namespace_of(cluster)),
        )

    def _follow(self, filters: Sequence[str], clusters: frozenset[str] | None) -> None:
        """Follow the objects of some clusters (None: of all)."""
        consumer = self._consumer(self._bus, clusters)
        stream = self._subjects.stream(OBJECTS)
        following = follow_last(self._bus, self._clock, stream, lambda: filters, consumer)
        self._spawn(f"objects {len(self._consumers)}", following)

    def _follow_alone(self, name: str, bus: Bus) -> None:
        """Follow the objects of one cluster on its own connection, while its agent is active."""
        activity, filters = self.agents[name].activity, self._filters(name)
        consumer = self._consumer(bus, frozenset({name}), activity)
        stream = self._subjects.stream(OBJECTS)

        def follow() -> Coroutine[Any, Any, None]:
            return follow_last(bus, self._clock, stream, lambda: filters, consumer)

        self._spawn(f"objects of {name}", activity.run_while(follow))

    def _consumer(
        self, bus: Bus, clusters: frozenset[str] | None, activity: Activity | None = None
    ) -> "_ObjectConsumer":
        consumer = _ObjectConsumer(self, bus, clusters, activity)
        self._consumers.append(consumer)
        return consumer

    # ------------------------------------------------------------------------------------------ agents

    def _create(
        self, name: str, source: ClusterSource, settings: MemberBackendSettings, cluster: ClusterSettings | None = None
    ) -> MemberClusterAgent:
        own = self._own_connection(Principal("member-agent", name), self._directory / name)
        if own is not None:
            self._own[name] = own
            own.is_renewal_demanded = lambda: is_renewal_demanded(self._cache_of(name).cluster)
        bus = own.bus if own is not None else self._bus
        self._readers[name] = object_reader(bus, self._subjects, reporter_of(name))
        backend = new_backend(
            BackendContext(
                cluster=name,
                directory=self._directory / name,
                settings=settings,
                clock=self._clock,
                changed=partial(self._work_in_cluster_changed, name),
                reached=partial(self._cluster_reached, name),
                configured=cluster,
                garden_kubeconfig=shoot_kubeconfig(bus, self._subjects, name, cluster),
            )
        )
        ports = AgentPorts(
            source=source,
            cache=self._cache_of(name),
            backend=backend,
            records=ClusterRecords(self._directory / name),
            reporter=Reporter(bus=bus, subjects=self._subjects, token=reporter_of(name), sent=REPORTS),
            read=self._readers[name],
            landscape=lambda: self._landscape,
            clock=self._clock,
            certificate_expires_at=lambda: own.certificate_expires_at if own is not None else None,
        )
        agent = self.agents[name] = MemberClusterAgent(name, ports)
        return agent

    def _work_in_cluster_changed(self, cluster: str, work: str) -> None:
        if cluster in self.agents:
            self.agents[cluster].work_changed(work)

    def _cluster_reached(self, cluster: str) -> None:
        if cluster in self.agents:
            self.agents[cluster].enqueue_all()

    def _start(self, name: str) -> None:
        connect(self._own.get(name))
        self._spawn(f"agent {name}", self._run_agent(name))

    async def _run_agent(self, name: str) -> None:
        await self.agents[name].run()
        del self.agents[name]
        _log.info("agent.ended", cluster=name)

    def _seed_changed(self, name: str, seed: Document | None) -> None:
        """Enrol a Seed, update its source, or let its cluster leave."""
        if self._enrolling is None:
            return
        (self._seeds.discard if seed is None else self._seeds.add)(name)
        (self._removed_seeds.add if seed is None else self._removed_seeds.discard)(name)
        agent = self.agents.get(name)
        if agent is None:
            if seed is not None or (self._all_replayed and self._has_enrolled(name)):
                self._enrol(name, seed)
        elif isinstance(agent.cluster.source, EnrolledSeed):
            agent.cluster.source.seed = seed
            agent.cluster_changed()

    def _enrol(self, name: str, seed: Document | None) -> None:
        assert self._enrolling is not None
        source = EnrolledSeed(seed, period_seconds=self._enrolling.heartbeat_period_seconds)
        self._create(name, source, self._enrolling.backend).enqueue_all()
        self._start(name)
        _log.info("seed.enrolled", seed=name, leaves=seed is None)

    def _has_enrolled(self, name: str) -> bool:
        """True if the MemberCluster of a name is that of an enrolled Seed."""
        cluster = self._cache_of(name).cluster
        return cluster is not None and section(cluster, "metadata", "annotations").get(SEED_ANNOTATION) == name

    async def _withdraw_removed_seeds(self) -> None:
        """Let clusters leave whose Seed was deleted while no process watched; query Seeds that are just not there."""
        for name in tuple(self._caches):
            if name in self._seeds or name in self.agents or not self._has_enrolled(name):
                continue
            key = ObjectKey("seed", "", name)
            if name in self._removed_seeds:
                self._enrol(name, None)
            elif await self._read(key) is None:
                await Reporter(bus=self._bus, subjects=self._subjects, token=reporter_of(name), sent=REPORTS).query(key)
                _log.warning("seed.unknown", seed=name)

    # ------------------------------------------------------------------------------------------ events

    async def deliver(self, message: StreamMessage) -> None:
        """Update the cache of a cluster, and enqueue what changed. Raises Unavailable for a large object."""
        if message.marker is not None:
            return
        key = ObjectKey.from_tail(message.subject.removeprefix(f"{self._subjects.prefix}.changed."))
        cluster = key.name if key.kind == "membercluster" else key.namespace.removeprefix(CLUSTER_NAMESPACE_PREFIX)
        read = self._readers.get(cluster, self._read)
        document: Document | None = None
        if message.headers.get(Header.VERB) != "deleted":
            try:
                document = await read(key) if Header.TOO_LARGE in message.headers else _decode(message.body)
            except msgspec.DecodeError as error:
                _log.warning("object.unreadable", subject=message.subject, reason=str(error))
                return
        if key.kind == "seed":
            self._seed_changed(key.name, document)
            return
        cache = self._cache_of(cluster)
        was_there, before = cache.cluster is not None, _desired_state(cache.works.get(key.name))
        cache.update(key, document)
        agent = self.agents.get(cluster)
        if agent is None:
            return
        if key.kind == "work":
            agent.work_changed(key.name, is_urgent=_desired_state(document) != before)
        elif was_there and cache.cluster is not None and not cache.is_leaving:
            agent.cluster_changed()
        else:
            agent.enqueue_all()

    def _cache_of(self, cluster: str) -> ClusterCache:
        """The cache of a cluster; an empty one is complete if the follower of all clusters has replayed the stream."""
        if cluster not in self._caches:
            self._caches[cluster] = ClusterCache(is_complete=self._all_replayed)
        return self._caches[cluster]

    def replay_began(self, clusters: Collection[str] | None) -> None:
        """Start a replay for some clusters (None: for all)."""
        self._all_replayed = self._all_replayed and clusters is not None
        for name, cache in self._caches.items():
            if clusters is None or name in clusters:
                cache.replay_began()

    async def replay_ended(self, bus: Bus, clusters: Collection[str] | None) -> None:
        """End a replay. Raises Unavailable."""
        self._landscape = str((await bus.position(self._subjects.stream(OBJECTS))).created)
        for name, cache in self._caches.items():
            if clusters is None or name in clusters:
                cache.replay_ended()
        if self._enrolling is not None and clusters is None:
            self._all_replayed = True
            await self._withdraw_removed_seeds()
        for name in clusters if clusters is not None else tuple(self.agents):
            if name in self.agents:
                self.agents[name].enqueue_all()


class _ObjectConsumer:
    """Consumer of OBJECTS for the clusters of one follower (None: for all). `activity`: of an agent on its own."""

    def __init__(
        self, host: MemberAgentHost, bus: Bus, clusters: frozenset[str] | None, activity: Activity | None
    ) -> None:
        self._host = host
        self._bus = bus
        self._clusters = clusters
        self._activity = activity
        self._has_replayed = False
        self.deliver = host.deliver

    def replay_began(self) -> None:
        self._host.replay_began(self._clusters)

    async def replay_ended(self) -> None:
        await self._host.replay_ended(self._bus, self._clusters)
        self._has_replayed = True

    @property
    def is_synced(self) -> bool:
        """True once its part of the stream was replayed; an agent on standby follows nothing."""
        return self._has_replayed or (self._activity is not None and not self._activity.is_on)


def _desired_state(work: Document | None) -> object:
    """Identity of a Work's desired state; its status is not part of it."""
    metadata = section(work or {}, "metadata")
    return metadata.get("uid"), metadata.get("generation"), metadata.get("deletionTimestamp")
