"""MemberClusters: the clusters that placements go to, as their agents describe them."""

from gardenbus.common.resources.conditions import conditions_of, get_condition
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.views import ConditionView, ObjectView, View

MEMBER_AGENT = "MemberAgent"
"""The type of the agent whose word decides whether a cluster is eligible."""

JOINED = "Joined"
HEALTHY = "Healthy"
NAMESPACE_COLLECTION_SUCCEEDED = "NamespaceCollectionSucceeded"

AGENT_CLEANUP = "kubernetes-fleet.io/membercluster-finalizer"
"""The finalizer of a cluster's agent: set with its first report of a status, gone with the one that `has_left`."""

AGENT_LEFT = "MemberAgentLeft"
"""Reason of `Joined`, False: the cluster is being deleted, and nothing that came by Works is in it any more."""

CLUSTER_NAMESPACE_PREFIX = "fleet-member-"
"""Of the namespace that holds what is addressed to one cluster."""

REPORTER_PREFIX = "member:"
"""Of the token by which a cluster's agent reports. No Seed can be called so."""


class Taint(View, frozen=True):
    """What keeps placements off a cluster unless they tolerate it."""

    key: str = ""
    """What it is about."""

    value: str = ""
    """Compared where a toleration says `Equal`."""

    effect: str = ""
    """`NoSchedule`."""

    def __str__(self) -> str:
        """As Kubernetes writes it: `key=value:NoSchedule`."""
        return f"{self.key}{f'={self.value}' if self.value else ''}:{self.effect}"


class PropertyValue(View, frozen=True):
    """One property of a cluster."""

    value: str = ""
    """A quantity, as `4` or `1500m`."""

    observation_time: str = ""
    """When that was so."""


class ResourceUsage(View, frozen=True):
    """What a cluster has; quantities by resource."""

    capacity: dict[str, str] = {}
    """All there is."""

    allocatable: dict[str, str] = {}
    """What of it can be used."""

    available: dict[str, str] = {}
    """What of that is free."""


class AgentCondition(ConditionView, frozen=True):
    """A condition whose age counts."""

    last_transition_time: str = ""
    """Since when its status is what it is."""


class AgentStatus(View, frozen=True):
    """What one agent of a cluster says of itself."""

    type: str = ""
    """`MemberAgent`."""

    conditions: tuple[AgentCondition, ...] = ()
    """`Joined` and `Healthy`."""

    last_received_heartbeat: str = ""
    """When it was heard last."""


class MemberClusterSpec(View, frozen=True):
    """What is wanted of a cluster."""

    heartbeat_period_seconds: int = 60
    """How often its agent reports."""

    taints: tuple[Taint, ...] = ()
    """What keeps placements away."""


class MemberClusterStatus(View, frozen=True):
    """How a cluster is."""

    conditions: tuple[ConditionView, ...] = ()
    """`ReadyToJoin`, `Joined`, `NamespaceCollectionSucceeded`."""

    properties: dict[str, PropertyValue] = {}
    """What can be measured of it."""

    resource_usage: ResourceUsage = ResourceUsage()
    """What it has, and what of it is free."""

    agent_status: tuple[AgentStatus, ...] = ()
    """Its agents."""

    namespaces: dict[str, str] = {}
    """The namespaces in it, each with the Work that made it ("" for one made by others)."""


class MemberCluster(ObjectView, frozen=True):
    """A cluster that placements can go to."""

    spec: MemberClusterSpec = MemberClusterSpec()
    status: MemberClusterStatus = MemberClusterStatus()

    @property
    def agent(self) -> AgentStatus | None:
        """What its member agent says; None while it has said nothing."""
        return next((agent for agent in self.status.agent_status if agent.type == MEMBER_AGENT), None)


def namespace_of(cluster: str) -> str:
    """The namespace of what is addressed to a cluster."""
    return f"{CLUSTER_NAMESPACE_PREFIX}{cluster}"


def reporter_of(cluster: str) -> str:
    """The token by which a cluster's agent reports."""
    return f"{REPORTER_PREFIX}{cluster}"


def condition_in(conditions: tuple[ConditionView, ...], kind: str) -> ConditionView | None:
    """The condition of a type, or None."""
    return next((condition for condition in conditions if condition.type == kind), None)


def has_left(cluster: Document) -> bool:
    """Whether a cluster that is being deleted is done with: its agent says that nothing is left."""
    if not section(cluster, "metadata").get("deletionTimestamp"):
        return False
    joined = get_condition(conditions_of(cluster), JOINED)
    return joined is not None and (joined.get("status"), joined.get("reason")) == ("False", AGENT_LEFT)
