"""Users of the embedded Redis, below D/identity/redis: services and operator with their logins."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, cast

from gardenbus.cli.local.directory import LandscapeDirectory
from gardenbus.cli.local.redis_users import write_users
from gardenbus.common.adapters.redis.users import RedisUser
from gardenbus.embedded.process_specs import ProcessSpec

OPERATOR: RedisUser = "operator"


class RedisUsers(NamedTuple):
    """The file that Redis reads, the file of each user's password, and the operator's."""

    acl_file: Path
    password_files: Mapping[RedisUser, Path]
    operator_password: str

    def password(self, user: RedisUser) -> str:
        """A user's password."""
        return self.password_files[user].read_text(encoding="ascii").strip()

    @property
    def passwords(self) -> Mapping[RedisUser, str]:
        """All passwords."""
        return {user: self.password(user) for user in self.password_files}

    def admitted(self, spec: ProcessSpec) -> ProcessSpec:
        """A service as its user: the password is in a file, not in the environment. Other services get no address."""
        environ = dict(spec.environ)
        url = environ.pop("GARDENBUS_REDIS_URL")
        if spec.role in self.password_files:
            file = self.password_files[cast("RedisUser", spec.role)]
            environ["GARDENBUS_REDIS_URL"] = with_login(url, spec.role)
            environ["GARDENBUS_REDIS_PASSWORD_FILE"] = str(file)
        return spec._replace(environ=environ)

    def operators_url(self, url: str) -> str:
        """The URL as which `doctor` comes in. It holds the password."""
        return with_login(url, f"{OPERATOR}:{self.operator_password}")


def with_login(url: str, login: str) -> str:
    """A URL that names a user, or user:password."""
    return url.replace("://", f"://{login}@", 1)


def redis_users(directory: LandscapeDirectory, prefix: str) -> RedisUsers:
    """The users of a landscape's Redis, written. Raises DirectoryUnwritable."""
    files = write_users(directory.identity / "redis", prefix)
    return RedisUsers(files.acl, files.passwords, files.passwords[OPERATOR].read_text(encoding="ascii").strip())
