"""Files that give Redis its users: a password each, kept while it is there, and the file that Redis reads."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from gardenbus.common.adapters.redis.users import USERS, RedisUser, acl_file
from gardenbus.credentials import secret_files


class UserFiles(NamedTuple):
    """The file of users, by their passwords' hashes, and the files of the passwords. All are their owner's alone."""

    acl: Path
    passwords: Mapping[RedisUser, Path]


def write_users(folder: Path, prefix: str) -> UserFiles:
    """Write passwords that are not there yet, and the file of users. Raises OSError, BadRequest for the prefix."""
    secret_files.make_directory(folder)
    files = UserFiles(folder / "users.acl", {user: folder / f"{user}.password" for user in USERS})
    passwords: dict[RedisUser, str] = {user: secret_files.kept_password(file) for user, file in files.passwords.items()}
    secret_files.write(files.acl, acl_file(prefix, passwords).encode())
    return files
