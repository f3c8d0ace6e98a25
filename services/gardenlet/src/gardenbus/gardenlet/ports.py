"""Port to whatever runs the gardenlets that are deployed into shoots."""

from typing import Protocol


class GardenletDeployer(Protocol):
    """See the module."""

    def deployments_changed(self) -> None:
        """Sync the deployments now."""
        ...

    def shoots_on(self, seed: str) -> int:
        """Number of shoots bound to a seed; 0 when its gardenlet does not run here."""
        ...

    def remove_credentials(self, seed: str) -> None:
        """Remove the credentials of a gardenlet whose Seed was removed. Raises OSError."""
        ...


class NullGardenletDeployer:
    """A `GardenletDeployer` that runs nothing: another process reads the deployments."""

    def deployments_changed(self) -> None:
        """Do nothing."""

    def remove_credentials(self, seed: str) -> None:
        """Do nothing."""

    def shoots_on(self, seed: str) -> int:  # noqa: ARG002 - the port's
        """Always 0."""
        return 0
