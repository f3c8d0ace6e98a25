"""Files that give Redis its users, below a directory of this machine."""

from pathlib import Path
from typing import TYPE_CHECKING

from gardenbus.cli.local.directory import writing

if TYPE_CHECKING:
    from gardenbus.credentials.redis_users import UserFiles


def write_users(folder: Path, prefix: str) -> "UserFiles":
    """Write passwords that are not there yet, and the file of users. Raises DirectoryUnwritable."""
    from gardenbus.credentials import redis_users  # noqa: PLC0415  only who writes them needs it

    with writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        return redis_users.write_users(folder, prefix)
