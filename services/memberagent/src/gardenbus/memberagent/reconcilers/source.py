"""Where an agent has it from what its cluster is: a configuration, or a Seed."""

from typing import Protocol

from gardenbus.common.resources.document import Document, section
from gardenbus.memberagent.backend.port import Backend
from gardenbus.memberagent.decide.configuration import ClusterSettings, member_cluster_manifest
from gardenbus.memberagent.decide.enrolling import enrolment, seed_facts
from gardenbus.memberagent.decide.facts import Facts


class Source(Protocol):
    """See the module."""

    def manifest(self) -> Document | None:
        """The MemberCluster to register; None when the cluster shall leave."""
        ...

    @property
    def origin(self) -> str:
        """Whose cluster it is: a Seed's uid; "" for one out of a configuration."""
        ...

    @property
    def registers(self) -> bool:
        """Whether its agent brings it into the fleet, and people do not."""
        ...

    def facts(self, backend: Backend) -> Facts:
        """How the cluster is."""
        ...


class Configured:
    """A cluster out of a configuration. Implements `Source`."""

    origin = ""

    def __init__(self, cluster: ClusterSettings, *, period_seconds: int, registers: bool = True) -> None:
        self.registers = registers
        self._cluster = cluster
        self._manifest = member_cluster_manifest(cluster, period_seconds=period_seconds)

    def manifest(self) -> Document | None:
        """As configured."""
        return self._manifest

    def facts(self, backend: Backend) -> Facts:
        """As configured, with the backend's namespaces and health."""
        usage = self._cluster.resource_usage
        amounts = {"capacity": usage.capacity, "allocatable": usage.allocatable, "available": usage.available}
        return Facts(
            properties={name: str(value) for name, value in self._cluster.properties.items()},
            usage={field: {name: str(value) for name, value in each.items()} for field, each in amounts.items()},
            namespaces=backend.namespaces(),
            problem=backend.problem(),
            is_silent=backend.is_silent(),
        )


class Enrolled:
    """A cluster that is a Seed of the landscape. `seed` None: the Seed is gone. Implements `Source`."""

    registers = True

    def __init__(self, seed: Document | None, *, period_seconds: int) -> None:
        self.seed = seed
        self._period_seconds = period_seconds

    @property
    def origin(self) -> str:
        """The Seed."""
        return str(section(self.seed or {}, "metadata").get("uid") or "")

    def manifest(self) -> Document | None:
        """From the Seed's labels, taints and provider."""
        return enrolment(self.seed, period_seconds=self._period_seconds) if self.seed is not None else None

    def facts(self, backend: Backend) -> Facts:
        """From the Seed's status; the heartbeat is its gardenlet's."""
        if self.seed is None:
            return Facts(namespaces=backend.namespaces())
        return seed_facts(self.seed, backend.namespaces())
