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
