"""Ports of a cluster's backend: whoever applies manifests to the cluster, and sees what is there.

An agent consists of records (`records`: a lock, and the registration in the fleet), which are the same for all, and of
a backend. Backends are found by the entry points of the group `gardenbus.memberagent.backends` (`installed`).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from gardenbus.agent.domain.cluster_facts import ClusterFacts
from gardenbus.common.api.configuration.member_agent import ClusterSettings, MemberBackendSettings
from gardenbus.common.api.fleet.apply_strategies import DEFAULT_STRATEGY, ApplyStrategy
from gardenbus.common.ports.clock import Clock
from gardenbus.memberagent.domain.work_status import ManifestResult

WorkManifest = Mapping[str, Any]


class ApplyResult(NamedTuple):
    """Results of a Work's manifests."""

    outcomes: Sequence[ManifestResult]
    """One a manifest, in order."""

    requeue_after_seconds: float | None = None
    """Seconds until a result changes by itself."""


class ClusterBackend(Protocol):
    """One cluster that Works are applied to. All calls are idempotent, and may be cut at any await."""

    async def start(self) -> None:
        """Begin: this process is active for the cluster. Raises OSError, GardenbusError."""
        ...

    async def run(self) -> None:
        """Observe the cluster until cancelled. It is called again when it fails."""
        ...

    async def stop(self) -> None:
        """Release what `start` has opened; the cluster stays as it is."""
        ...

    def facts(self) -> ClusterFacts:
        """State of the cluster as it was last seen: no I/O that could take time."""
        ...

    def works(self) -> set[str]:
        """Works with objects in the cluster. Raises Unavailable while that is not yet read."""
        ...

    async def apply(
        self, work: str, manifests: Sequence[WorkManifest], strategy: ApplyStrategy = DEFAULT_STRATEGY
    ) -> ApplyResult:
        """Apply exactly these manifests for a Work, and prune others of it. Raises Unavailable, Forbidden."""
        ...

    async def compare(
        self, work: str, manifests: Sequence[WorkManifest], strategy: ApplyStrategy = DEFAULT_STRATEGY
    ) -> ApplyResult:
        """Compare manifests with the objects in the cluster. Raises Unavailable, Forbidden."""
        ...

    async def remove(self, work: str) -> str | None:
        """Remove all objects of a Work; returns why some are left. Raises Unavailable, Forbidden."""
        ...

    async def abandon(self, work: str) -> str | None:
        """Leave all objects of a Work in the cluster, where they belong to none; returns why some still do.

        Raises Unavailable, Forbidden.
        """
        ...


class BackendContext(NamedTuple):
    """The environment of a backend."""

    cluster: str
    directory: Path
    """The cluster's own."""

    settings: MemberBackendSettings
    clock: Clock
    changed: Callable[[str], None] = lambda _: None
    """Requests the reconciliation of a Work: something of it was changed in the cluster."""

    reached: Callable[[], None] = lambda: None
    """Requests the reconciliation of everything: the cluster can be reached again."""

    configured: ClusterSettings | None = None
    """The cluster in the configuration; None for an enrolled Seed."""

    garden_kubeconfig: Callable[[], Awaitable[str]] | None = None
    """Obtains a kubeconfig from the landscape, for a cluster that is a shoot of it. Raises GardenbusError."""


BackendFactory = Callable[[BackendContext], ClusterBackend]
"""Makes a backend: loaded by an entry point of the group `gardenbus.memberagent.backends`. Raises SettingsInvalid."""
