"""Distributions beside the gardenlet."""

from pathlib import Path

from gardenbus.gardenlet.backend.installed import ENTRY_POINT_GROUP


def installed(folder: Path, name: str, target: str) -> None:
    """Put a distribution with one entry point into a folder, as pip would."""
    distribution = folder / f"{name}-1.0.dist-info"
    distribution.mkdir()
    (distribution / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (distribution / "entry_points.txt").write_text(f"[{ENTRY_POINT_GROUP}]\n{name} = {target}\n")
