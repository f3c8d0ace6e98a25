"""Port to the cluster of an agent."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from gardenbus.memberagent.domain.work_status import ManifestResult

REGISTERED = "registered.json"
"""File of a cluster's directory with its last registration."""

Manifest = Mapping[str, Any]


class ApplyResult(NamedTuple):
    """Results of a Work's manifests."""

    outcomes: Sequence[ManifestResult]
    """One a manifest, in order."""

    requeue_after_seconds: float | None = None
    """Seconds until a result changes by itself."""


class Registration(NamedTuple):
    """Registration of a cluster in a fleet."""

    landscape: str
    """Landscape of the fleet; void in another one."""

    origin: str
    """uid of the Seed that it is; "" for a configured cluster."""

    uid: str
    """uid of the MemberCluster."""


class ClusterBackend(Protocol):
    """One cluster that Works are applied to. All calls are idempotent."""

    @property
    def healthy_message(self) -> str:
        """Message of a healthy cluster: what the agent knows of it."""
        ...

    def acquire(self) -> bool:
        """Become active for the cluster; False while another process is. Raises OSError."""
        ...

    def release(self) -> None:
        """Let another process become active."""
        ...

    def registered(self) -> Registration | None:
        """Last registration in a fleet; None without one."""
        ...

    def register(self, registration: Registration) -> None:
        """Save the registration."""
        ...

    def works(self) -> set[str]:
        """Works with objects in the cluster."""
        ...

    async def apply(self, work: str, manifests: Sequence[Manifest]) -> ApplyResult:
        """Apply exactly these manifests for a Work, and prune others of it."""
        ...

    def compare(self, manifests: Sequence[Manifest]) -> ApplyResult:
        """Compare manifests with the objects in the cluster."""
        ...

    def remove(self, work: str) -> str | None:
        """Remove all objects of a Work; returns why some are left."""
        ...

    def namespaces(self) -> Mapping[str, str]:
        """Namespaces in the cluster, each with the Work that made it."""
        ...

    def problem(self) -> str | None:
        """Reason why the cluster is not healthy."""
        ...

    def is_silent(self) -> bool:
        """True if the cluster is cut off, so that no heartbeat can be reported."""
        ...
