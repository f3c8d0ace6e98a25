"""Sources of a cluster's manifest and state: a configuration, or a Seed."""

from typing import Protocol

from gardenbus.agent.domain.cluster_facts import ClusterFacts, configured_facts
from gardenbus.agent.domain.enrolment import enrolment, seed_facts
from gardenbus.agent.domain.registration import member_cluster_manifest
from gardenbus.common.api.configuration.member_agent import ClusterSettings
from gardenbus.common.api.document import Document, section


class ClusterSource(Protocol):
    """See the module."""

    def manifest(self) -> Document | None:
        """The MemberCluster to register; None when the cluster should leave."""
        ...

    @property
    def origin(self) -> str:
        """The Seed's uid; "" for a configured cluster."""
        ...

    @property
    def registers(self) -> bool:
        """True if its agent registers it, false if people do."""
        ...

    def facts(self, measured: ClusterFacts) -> ClusterFacts:
        """Current state of the cluster, from what its backend has measured."""
        ...


class ConfiguredCluster:
    """A configured cluster. Implements `ClusterSource`."""

    origin = ""

    def __init__(self, cluster: ClusterSettings, *, period_seconds: int, registers: bool = True) -> None:
        self.registers = registers
        self._cluster = cluster
        self._manifest = member_cluster_manifest(cluster, period_seconds=period_seconds)

    def manifest(self) -> Document | None:
        """Manifest from the configuration."""
        return self._manifest

    def facts(self, measured: ClusterFacts) -> ClusterFacts:
        """State from the configuration, with the backend's namespaces and health."""
        return configured_facts(self._cluster, measured)


class EnrolledSeed:
    """An enrolled Seed of the landscape. `seed` None: the Seed was deleted. Implements `ClusterSource`."""

    registers = True

    def __init__(self, seed: Document | None, *, period_seconds: int) -> None:
        self.seed = seed
        self._period_seconds = period_seconds

    @property
    def origin(self) -> str:
        """The Seed's uid."""
        return str(section(self.seed or {}, "metadata").get("uid") or "")

    def manifest(self) -> Document | None:
        """Manifest from the Seed's labels, taints and provider."""
        return enrolment(self.seed, period_seconds=self._period_seconds) if self.seed is not None else None

    def facts(self, measured: ClusterFacts) -> ClusterFacts:
        """State from the Seed's status; the heartbeat is its gardenlet's."""
        if self.seed is None:
            return ClusterFacts(namespaces=measured.namespaces)
        return seed_facts(self.seed, measured)
