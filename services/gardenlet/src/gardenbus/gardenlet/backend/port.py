"""Ports of a seed's backend, and its errors.

A backend consists of the records of its shoots, which are files with a fence (`local_files`), and of a maker: whoever
makes control planes be there. `seed_backend` puts them together, the same for every maker. Makers are found by the
entry points of the group `gardenbus.gardenlet.backends` (`installed`).
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from gardenbus.common.api.configuration.gardenlet import ShootBackendSettings
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Transient, Unavailable
from gardenbus.common.ports.clock import Clock
from gardenbus.gardenlet.domain.flows import OperationType
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_record import ShootName


class FencingToken(NamedTuple):
    """Fencing token of a gardenlet: position of the publish that acquired its Lease. Compared as a whole."""

    created: int
    sequence: int

    @property
    def text(self) -> str:
        """Text for a report's header."""
        return f"{self.created}.{self.sequence}"


class StaleFencingToken(Transient):
    """Another gardenlet has acquired the seed: writes are rejected."""

    reason = "FencedOff"


class StepFailed(Transient):
    """A step failed. `codes` are Gardener's error codes, if the cause is known.

    `counted_as`: the record of the shoot counts failures under this name.
    """

    reason = "StepFailed"

    def __init__(self, message: str, codes: tuple[str, ...] = (), *, counted_as: str = "") -> None:
        super().__init__(message)
        self.codes = codes
        self.counted_as = counted_as


Kept = Mapping[str, Mapping[str, Any]]
"""Lasting parts of a shoot, by step: those made here, and those of the ShootState that it was restored from."""


class StepRequest(NamedTuple):
    """One step of a shoot's flow that shall take effect.

    `observed` is None when the shoot is no longer this seed's, and what is left of it is torn down. `failures` counts
    the failures of this shoot (`StepFailed.counted_as`).
    """

    shoot: ShootName
    uid: str
    step: str
    operation: OperationType
    observed: ObservedShoot | None
    kept: Kept
    failures: Mapping[str, int] = {}


class KubeconfigRequest(NamedTuple):
    """Request for a kubeconfig: its shoot, its user, and its life."""

    shoot: ShootName
    uid: str
    kept: Kept
    user: str
    life: timedelta


class Maker(Protocol):
    """Makes control planes be there, and be gone. Every method may be cut at any await, and is then called again."""

    async def start(self) -> None:
        """Open what is needed to serve health probes; other replicas may own the seed."""
        ...

    async def stop(self) -> None:
        """Release it. What was made stays, and goes on running."""
        ...

    async def take_over(self, shoots: Mapping[ShootName, Kept]) -> None:
        """Own what was made of these shoots, which are all that have a record: the seed was acquired."""
        ...

    @property
    def health_url(self) -> str:
        """URL of the seed API server's `/healthz`."""
        ...

    @property
    def kubernetes_version(self) -> str:
        """Kubernetes version of the seed."""
        ...

    @property
    def healthy_message(self) -> str:
        """Message of conditions that are well; "" where the maker has looked, as Gardener's messages say."""
        ...

    async def make(self, request: StepRequest) -> Document:
        """Have the result of a step be there; returns what lasts of it, for `kept` and the ShootState.

        Repeated, also after it was cut, it changes nothing, and returns the same. Raises StepFailed, StaleFencingToken.
        """
        ...

    async def problems(self, observed: ObservedShoot, kept: Kept) -> dict[str, str]:
        """Problems of a running shoot, by condition or constraint type; empty when healthy."""
        ...

    @property
    def has_kubeconfigs(self) -> bool:
        """True if `admin_kubeconfig` is served: the control planes have API servers."""
        ...

    async def admin_kubeconfig(self, request: KubeconfigRequest) -> Document:
        """`{"kubeconfig", "expirationTimestamp"}` for somebody who may do everything in a shoot.

        Raises Conflict while it has no API server that could be reached. Any replica serves it, owner or not.
        """
        ...

    async def seed_problem(self) -> str | None:
        """Problem of the seed's own components, or None."""
        ...

    async def ensure_bucket(self, name: str) -> None:
        """Make the backup bucket; idempotent. Raises StepFailed."""
        ...

    async def delete_bucket(self, name: str) -> None:
        """Remove the backup bucket; idempotent. Raises StepFailed."""
        ...

    async def delete_backups(self, entry: str) -> None:
        """Remove the backups of a shoot that lived on after it (`keeps_backups`); idempotent. Raises StepFailed."""
        ...


class GardenReader(Protocol):
    """Reads what the garden lets a gardenlet read: CloudProfiles, and the Secrets that its shoots name."""

    async def get(self, key: ObjectKey) -> Document | None:
        """An object; None without one. Raises Unavailable, Forbidden."""
        ...

    async def list(self, kind: str, field_selector: str = "", *, namespace: str = "") -> Sequence[Document]:
        """All objects of a kind, or those of a namespace, that a field selector selects. Raises as `get` does."""
        ...


class NullGardenReader:
    """Reads nothing: for a seed without a garden."""

    async def get(self, key: ObjectKey) -> Document | None:
        """None."""
        del key

    async def list(self, kind: str, field_selector: str = "", *, namespace: str = "") -> Sequence[Document]:
        """Nothing."""
        del kind, field_selector, namespace
        return ()


class Extension(Protocol):
    """A party outside of the gardenlet that takes the steps of a seed's shoots, on requests by the bus."""

    async def request(self, step: str, body: bytes, *, timeout_seconds: float) -> bytes:
        """The response to a request for a step. Raises Unavailable, which names the subject, without one in time."""
        ...


class NoExtension:
    """Nobody: for a seed without a bus."""

    async def request(self, step: str, body: bytes, *, timeout_seconds: float) -> bytes:
        """Raises Unavailable."""
        del body, timeout_seconds
        raise Unavailable(f"there is no bus to request step {step}")


class BackendEvent(NamedTuple):
    """Something that happened to a shoot besides its steps, and shall be an Event of type Warning."""

    shoot: ShootName
    uid: str
    reason: str
    message: str


class MakerContext(NamedTuple):
    """The surroundings of a maker.

    What is appended to `events` becomes Events with the next look at the health of shoots. The oldest go when too many
    wait.

    `directory` is the seed's own. Whatever must not happen once another gardenlet has acquired the seed happens within
    `owned()`, which raises StaleFencingToken: quickly, since the successor waits for its end.
    """

    seed_name: str
    directory: Path
    settings: ShootBackendSettings
    clock: Clock
    owned: Callable[[], AbstractContextManager[None]]
    garden: GardenReader = NullGardenReader()
    events: deque[BackendEvent] = deque(maxlen=0)
    extension: Extension = NoExtension()
    keeps_backups: bool = False
    """The backups of a shoot that is deleted live on, until they are deleted as well."""


MOST_EVENTS = 100
"""Events of a backend that wait to be recorded."""

MakerFactory = Callable[[MakerContext], Maker]
"""Makes a maker: loaded by an entry point of the group `gardenbus.gardenlet.backends`. Raises SettingsInvalid."""
