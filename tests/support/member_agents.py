"""Member agents for tests: configurations that are quick, and hosts in a landscape of one process."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from gardenbus.agent.connections import AgentConnections
from gardenbus.agent.host import HostPorts
from gardenbus.common.adapters.nats import jetstream
from gardenbus.common.adapters.nats.jetstream import JetStreamBus
from gardenbus.common.api.configuration.member_agent import MemberAgentConfiguration, parse_configurations
from gardenbus.common.api.document import Document, encode, section
from gardenbus.common.api.fleet.member_clusters import namespace_of
from gardenbus.common.api.fleet.placement_parts import WORK_CLEANUP
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.memberagent.host import MemberAgentHost
from tests.support.builders import merged
from tests.support.eventually import eventually
from tests.support.gardenlets import Garden


def a_member_cluster(name: str = "lisbon", **changes: Any) -> Document:
    """A cluster of a configuration."""
    default: Document = {
        "metadata": {"name": name, "labels": {"region": "south"}},
        "properties": {"kubernetes-fleet.io/node-count": "4"},
        "resourceUsage": {"capacity": {"cpu": "16"}, "allocatable": {"cpu": "15"}, "available": {"cpu": "9"}},
    }
    return merged(default, changes)


def an_agent_configuration(*clusters: Document, **changes: Any) -> Document:
    """A MemberAgentConfiguration with a heartbeat each second."""
    default: Document = {
        "apiVersion": "memberagent.config.gardenbus.io/v1alpha1",
        "kind": "MemberAgentConfiguration",
        "heartbeatPeriodSeconds": 1,
        "clusters": list(clusters),
    }
    return merged(default, changes)


def read(document: Document) -> MemberAgentConfiguration:
    """A configuration as it is read."""
    (configuration,) = parse_configurations(encode(document))
    return configuration


def a_manifest(kind: str = "ConfigMap", name: str = "motd", **changes: Any) -> Document:
    """An object that a Work brings."""
    version = {"ConfigMap": "v1", "Namespace": "v1", "Deployment": "apps/v1"}.get(kind, "example.org/v1")
    namespace = {} if kind == "Namespace" else {"namespace": "shop"}
    return merged({"apiVersion": version, "kind": kind, "metadata": {"name": name, **namespace}}, changes)


def a_work(*manifests: Document, name: str = "shop-work", cluster: str = "lisbon", **changes: Any) -> Document:
    """A Work for a cluster."""
    default: Document = {
        "apiVersion": "placement.kubernetes-fleet.io/v1beta1",
        "kind": "Work",
        "metadata": {"name": name, "namespace": namespace_of(cluster), "finalizers": [WORK_CLEANUP]},
        "spec": {"workload": {"manifests": list(manifests)}},
    }
    return merged(default, changes)


@asynccontextmanager
async def member_agents(garden: Garden, *configurations: Document) -> AsyncGenerator[MemberAgentHost]:
    """A process's worth of agents."""
    async with jetstream.connect(garden.nats_url, "memberagent", garden.subjects.prefix, manages_streams=False) as bus:
        ports = HostPorts(bus, garden.subjects, SystemClock(), garden.directory)
        host = MemberAgentHost([read(each) for each in configurations], ports)
        task = asyncio.create_task(host.run())
        try:
            yield host
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def member_agents_alone(garden: Garden, *configurations: Document) -> AbstractAsyncContextManager[MemberAgentHost]:
    """A process whose agents have credentials of their own in their directories."""
    return agents_of(garden.nats_url, garden.subjects, garden.directory, *configurations)


@asynccontextmanager
async def agents_of(
    nats_url: str, subjects: Subjects, directory: Path, *configurations: Document
) -> AsyncGenerator[MemberAgentHost]:
    """The same, of any landscape."""
    ports = HostPorts(JetStreamBus(subjects), subjects, SystemClock(), directory, AgentConnections(nats_url, subjects))
    host = MemberAgentHost([read(each) for each in configurations], ports)
    task = asyncio.create_task(host.run())
    try:
        yield host
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await host.close()


def cluster_key(name: str = "lisbon") -> ObjectKey:
    """A MemberCluster's."""
    return ObjectKey("membercluster", "", name)


def work_key(name: str = "shop-work", cluster: str = "lisbon") -> ObjectKey:
    """A Work's."""
    return ObjectKey("work", namespace_of(cluster), name)


def observed_conditions(document: Document) -> dict[str, tuple[str, str]]:
    """Status and reason of every condition."""
    return {
        each["type"]: (each["status"], each["reason"]) for each in section(document, "status").get("conditions", [])
    }


async def until_condition(garden: Garden, key: ObjectKey, kind: str, status: str, reason: str) -> Document:
    """Wait until a condition says so."""

    async def reached() -> Document:
        document = await garden.get(key)
        assert observed_conditions(document).get(kind) == (status, reason), document.get("status")
        return document

    return await eventually(reached, every=0.05)
