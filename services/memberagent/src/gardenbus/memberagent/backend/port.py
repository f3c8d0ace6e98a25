"""What an agent needs of its cluster."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from gardenbus.memberagent.decide.works import Outcome

REGISTERED = "registered.json"
"""The file of a cluster's directory that tells as what it was in the fleet."""

Manifest = Mapping[str, Any]


class Applied(NamedTuple):
    """What became of a Work's manifests."""

    outcomes: Sequence[Outcome]
    """One a manifest, in their order."""

    look_again_seconds: float | None = None
    """When something of it will be different by itself."""


class Registration(NamedTuple):
    """As what a cluster was in the fleet."""

    landscape: str
    """Which landscape it was: another one knows nothing of it."""

    origin: str
    """Whose cluster it was: a Seed's uid; "" for one out of a configuration."""

    uid: str
    """The MemberCluster's."""


class Backend(Protocol):
    """One cluster, as far as Works are concerned. Everything may be repeated."""

    def acquire(self) -> bool:
        """Become the one that speaks for the cluster; False while another process does. Raises OSError."""
        ...

    def release(self) -> None:
        """Let another process speak for it."""
        ...

    def registered(self) -> Registration | None:
        """As what it was in the fleet last; None where it never was."""
        ...

    def register(self, registration: Registration) -> None:
        """Keep as what it is in the fleet."""
        ...

    def works(self) -> set[str]:
        """The Works of which something is in the cluster."""
        ...

    async def apply(self, work: str, manifests: Sequence[Manifest]) -> Applied:
        """Have the cluster hold exactly these manifests of a Work."""
        ...

    def compare(self, manifests: Sequence[Manifest]) -> Applied:
        """Tell which manifests the cluster does not hold as they are."""
        ...

    def remove(self, work: str) -> str | None:
        """Take everything of a Work off; answers why not all of it goes."""
        ...

    def namespaces(self) -> Mapping[str, str]:
        """Namespaces in the cluster, each with the Work that made it."""
        ...

    def problem(self) -> str | None:
        """Why the cluster is not healthy."""
        ...

    def is_silent(self) -> bool:
        """Whether the cluster is cut off, so that no heartbeat can be told."""
        ...
