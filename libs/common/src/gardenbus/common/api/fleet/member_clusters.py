"""MemberClusters: the target clusters of placements, as reported by their agents."""

from gardenbus.common.api.conditions import conditions_of, get_condition
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.views import ConditionView, ObjectView, TypedView

MEMBER_AGENT = "MemberAgent"
"""Type of the agent that decides whether a cluster is eligible."""

JOINED = "Joined"
HEALTHY = "Healthy"
NAMESPACE_COLLECTION_SUCCEEDED = "NamespaceCollectionSucceeded"

AGENT_CLEANUP = "kubernetes-fleet.io/membercluster-finalizer"
"""Finalizer of a cluster's agent: set with its first status report, removed with the one that `has_left`."""

AGENT_LEFT = "MemberAgentLeft"
"""Reason of `Joined`, False: the cluster is being deleted, and nothing applied by Works is left in it."""

CLUSTER_NAMESPACE_PREFIX = "fleet-member-"
"""Prefix of the namespace of a cluster's Works."""

REPORTER_PREFIX = "member:"
"""Prefix of the name that a cluster's agent reports by. No Seed can have such a name."""


class ClusterTaint(TypedView, frozen=True):
    """A taint: placements without a toleration do not select the cluster."""

    key: str = ""
    """The taint's key."""

    value: str = ""
    """Compared by tolerations with the operator `Equal`."""

    effect: str = ""
    """`NoSchedule`."""

    def __str__(self) -> str:
        """As Kubernetes writes it: `key=value:NoSchedule`."""
        return f"{self.key}{f'={self.value}' if self.value else ''}:{self.effect}"


class PropertyValue(TypedView, frozen=True):
    """One property of a cluster."""

    value: str = ""
    """A quantity, as `4` or `1500m`."""

    observation_time: str = ""
    """Time of the observation."""


class ResourceUsage(TypedView, frozen=True):
    """Resources of a cluster, quantities by resource."""

    capacity: dict[str, str] = {}
    """Total resources."""

    allocatable: dict[str, str] = {}
    """Resources that workloads may use."""

    available: dict[str, str] = {}
    """Allocatable resources that are free."""


class AgentCondition(ConditionView, frozen=True):
    """A condition with its transition time."""

    last_transition_time: str = ""
    """Time of the last change of status."""


class AgentStatus(TypedView, frozen=True):
    """Status of one agent of a cluster."""

    type: str = ""
    """`MemberAgent`."""

    conditions: tuple[AgentCondition, ...] = ()
    """`Joined` and `Healthy`."""

    last_received_heartbeat: str = ""
    """Time of the last heartbeat."""


class MemberClusterSpec(TypedView, frozen=True):
    """Spec of a MemberCluster."""

    heartbeat_period_seconds: int = 60
    """Period of the agent's heartbeat."""

    taints: tuple[ClusterTaint, ...] = ()
    """Taints that keep placements off."""


class MemberClusterStatus(TypedView, frozen=True):
    """Status of a MemberCluster."""

    conditions: tuple[ConditionView, ...] = ()
    """`ReadyToJoin`, `Joined`, `NamespaceCollectionSucceeded`."""

    properties: dict[str, PropertyValue] = {}
    """Properties of the cluster."""

    resource_usage: ResourceUsage = ResourceUsage()
    """Total and free resources."""

    agent_status: tuple[AgentStatus, ...] = ()
    """Its agents."""

    namespaces: dict[str, str] = {}
    """Namespaces of the cluster, each with the Work that created it ("" for one created by others)."""

    client_certificate_expiration_timestamp: str = ""
    """The end of its agent's client certificate."""


class MemberCluster(ObjectView, frozen=True):
    """A target cluster of placements."""

    spec: MemberClusterSpec = MemberClusterSpec()
    status: MemberClusterStatus = MemberClusterStatus()

    @property
    def agent(self) -> AgentStatus | None:
        """Status of its member agent; None before the first report."""
        return next((agent for agent in self.status.agent_status if agent.type == MEMBER_AGENT), None)


def namespace_of(cluster: str) -> str:
    """Namespace of a cluster's Works."""
    return f"{CLUSTER_NAMESPACE_PREFIX}{cluster}"


def reporter_of(cluster: str) -> str:
    """Name that a cluster's agent reports by."""
    return f"{REPORTER_PREFIX}{cluster}"


def has_left(cluster: Document) -> bool:
    """True when a cluster that is being deleted is empty by its agent's report."""
    if not section(cluster, "metadata").get("deletionTimestamp"):
        return False
    joined = get_condition(conditions_of(cluster), JOINED)
    return joined is not None and (joined.get("status"), joined.get("reason")) == ("False", AGENT_LEFT)
