"""The examples of the repository, which travel with this distribution: `gardenbus up --example landscape`.

The files are links to `examples/` at the repository's root, and files of their own in the wheel.
"""

from enum import StrEnum
from pathlib import Path


class Example(StrEnum):
    """Name of an example, and of its folder here."""

    LANDSCAPE = "landscape"
    FLEET = "fleet"

    @property
    def folder(self) -> Path:
        """Folder with the example's manifests."""
        return Path(__file__).with_name(self.value)
