"""Base of makers whose seed is a directory: `/healthz` on the loopback, and buckets as directories.

A backend beside the gardenlet can be a subclass that has `make` and `problems`, as `examples/backend` is.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from gardenbus.common.api.document import Document
from gardenbus.common.errors import Unsupported
from gardenbus.gardenlet.backend.buckets import BucketDirectory
from gardenbus.gardenlet.backend.health_server import HealthServer
from gardenbus.gardenlet.backend.port import Kept, KubeconfigRequest, MakerContext, StepRequest
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_record import ShootName


class DirectoryMaker(ABC):
    """A maker without API servers. With `make` and `problems` it implements `backend.port.Maker`."""

    kubernetes_version = "1.34.1"
    has_kubeconfigs = False
    healthy_message = ""

    def __init__(self, context: MakerContext) -> None:
        self.context = context
        self.owned = context.owned
        self.directory = context.directory.absolute()
        self.healthy_message = self.healthy_message or f"The backend {context.settings.type} has named no problem."
        self._buckets = BucketDirectory(context.directory / "buckets", context.owned)
        self._health = HealthServer(context.directory / "healthz-fails")

    async def start(self) -> None:
        """Serve `/healthz`."""
        await self._health.start()

    async def stop(self) -> None:
        """Stop serving."""
        await self._health.stop()

    async def take_over(self, shoots: Mapping[ShootName, Kept]) -> None:
        """Nothing runs that could be taken over."""
        del shoots

    @property
    def health_url(self) -> str:
        """URL of `/healthz`."""
        return f"{self._health.url}/healthz"

    @abstractmethod
    async def make(self, request: StepRequest) -> Document:
        """Have the result of a step be there; returns what lasts of it."""

    @abstractmethod
    async def problems(self, observed: ObservedShoot, kept: Kept) -> dict[str, str]:
        """Problems of a running shoot, by condition or constraint type."""

    async def admin_kubeconfig(self, request: KubeconfigRequest) -> Document:
        """None: there is no API server. Raises Unsupported."""
        raise Unsupported(f"shoot {'/'.join(request.shoot)} has no API server: there is no kubeconfig")

    async def seed_problem(self) -> str | None:
        """None: whoever can look says more."""
        return None

    async def ensure_bucket(self, name: str) -> None:
        """Make the bucket's directory."""
        self._buckets.make(name)

    async def delete_bucket(self, name: str) -> None:
        """Remove the bucket's directory."""
        self._buckets.remove(name)

    async def delete_backups(self, entry: str) -> None:
        """None are made."""
        del entry
