"""Port to the backend that shoots run on, and its errors."""

from typing import NamedTuple, Protocol

from gardenbus.common.errors import Transient
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_record import ShootName, ShootRecord


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
    """A step failed. `codes` are Gardener's error codes, if the cause is known."""

    reason = "StepFailed"

    def __init__(self, message: str, codes: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.codes = codes


class SeedBackend(Protocol):
    """One seed. Records and step results are durable when a call returns; a step takes effect once a run."""

    async def start(self) -> None:
        """Open what is needed to serve health probes."""
        ...

    async def stop(self) -> None:
        """Release it."""
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
        """Message of conditions that are well; "" where the backend has looked, as Gardener's messages say."""
        ...

    async def acquire(self, fencing_token: FencingToken) -> None:
        """Let only this token write from now on. Raises StaleFencingToken when a higher one was here before."""
        ...

    def shoots(self) -> list[ShootName]:
        """Every shoot with a record."""
        ...

    def load(self, shoot: ShootName) -> ShootRecord | None:
        """The record of a shoot."""
        ...

    def save(self, record: ShootRecord) -> None:
        """Save a record. Raises StaleFencingToken."""
        ...

    def forget(self, shoot: ShootName) -> None:
        """Remove a record and whatever is left of its shoot. Raises StaleFencingToken."""
        ...

    async def perform(self, shoot: ShootName, step: str, observed: ObservedShoot | None) -> ShootRecord:
        """Perform a step of the current run and record its completion; returns the updated record.

        Raises StepFailed, StaleFencingToken. Killed at any point it has either happened and is recorded, or not.
        """
        ...

    async def problems(self, observed: ObservedShoot) -> dict[str, str]:
        """Problems of a running shoot, by condition or constraint type; empty when healthy."""
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
