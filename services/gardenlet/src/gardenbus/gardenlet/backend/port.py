"""The port to whatever shoots are built on, and how its work fails."""

from typing import NamedTuple, Protocol

from gardenbus.common.errors import Transient
from gardenbus.gardenlet.decide.operations import ShootTold
from gardenbus.gardenlet.decide.record import ShootRecord


class Fence(NamedTuple):
    """A gardenlet's fencing number: where the publish stands by which it took its Lease. Compare as a whole."""

    created: int
    sequence: int

    @property
    def text(self) -> str:
        """As it travels in a report's header."""
        return f"{self.created}.{self.sequence}"


class FencedOff(Transient):
    """Another gardenlet has taken the seed over: nothing may be written any more."""

    reason = "FencedOff"


class StepFailed(Transient):
    """A step did not succeed. `codes` are Gardener's error codes, if the cause is known."""

    reason = "StepFailed"

    def __init__(self, message: str, codes: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.codes = codes


ShootName = tuple[str, str]
"""Namespace and name."""


class Backend(Protocol):
    """One seed. Records and the steps' results are durable when a call returns; a step takes effect once a run."""

    async def start(self) -> None:
        """Open what is needed to answer health questions."""
        ...

    async def stop(self) -> None:
        """Release it."""
        ...

    @property
    def health_url(self) -> str:
        """Where the seed's API server answers `/healthz`."""
        ...

    @property
    def kubernetes_version(self) -> str:
        """What the seed runs."""
        ...

    async def take_over(self, fence: Fence) -> None:
        """From now on only this fence may write. Raises FencedOff when a higher one was here before."""
        ...

    def shoots(self) -> list[ShootName]:
        """Every shoot that something is kept of."""
        ...

    def load(self, shoot: ShootName) -> ShootRecord | None:
        """What is kept of a shoot."""
        ...

    def save(self, record: ShootRecord) -> None:
        """Keep it. Raises FencedOff."""
        ...

    def forget(self, shoot: ShootName) -> None:
        """Remove the record and whatever is left below it. Raises FencedOff."""
        ...

    async def perform(self, shoot: ShootName, step: str, told: ShootTold | None) -> ShootRecord:
        """Carry a step of the current run out and record that it is done; answers the record after it.

        Raises StepFailed, FencedOff. Cancelled or killed at any point it has either happened and is recorded, or not.
        """
        ...

    async def problems(self, told: ShootTold) -> dict[str, str]:
        """What is wrong with a running shoot: condition or constraint type to a sentence; empty when healthy."""
        ...

    async def seed_problem(self) -> str | None:
        """What is wrong with the seed's own components."""
        ...

    async def ensure_bucket(self, name: str) -> None:
        """Make the backup bucket; idempotent. Raises StepFailed."""
        ...

    async def delete_bucket(self, name: str) -> None:
        """Remove the backup bucket; idempotent. Raises StepFailed."""
        ...
