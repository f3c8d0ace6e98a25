"""`redis-users`: the users of a Redis that `up` does not start."""

from pathlib import Path
from typing import Annotated

import typer

from gardenbus.cli.local.directory import DirectoryUnwritable
from gardenbus.cli.local.redis_users import write_users
from gardenbus.cli.output.console import Exit, exit_codes, print_error, show_lines


def redis_users(
    folder: Annotated[Path, typer.Argument(help="Where the files go.", metavar="DIR")],
    *,
    prefix: Annotated[str, typer.Option("--prefix", help="First part of all keys.")] = "garden",
) -> None:
    """Write a file of users for Redis (`aclfile`), and a file with the password of each.

    Passwords that are there stay as they are. A service gets its own by GARDENBUS_REDIS_PASSWORD_FILE, and its name in
    GARDENBUS_REDIS_URL: redis://relay@host:6379/0.

    Example: gardenbus redis-users /etc/gardenbus/redis
    """
    with exit_codes():
        try:
            files = write_users(folder, prefix)
        except DirectoryUnwritable as error:
            print_error(str(error))
            raise typer.Exit(Exit.FAILED) from error
        show_lines([str(files.acl), *(str(file) for file in files.passwords.values())])
