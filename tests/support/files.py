"""What the files that a test left say."""

from pathlib import Path


def open_to_others(directory: Path) -> list[Path]:
    """Everything from a directory down that has a mode bit for the group or for others; links have no mode."""
    below = [directory, *sorted(directory.rglob("*"))]
    return [path for path in below if not path.is_symlink() and path.lstat().st_mode & 0o077]
