"""Access to Redis: a password that is read from its file at each connect, and the authorities of its TLS."""

import ssl
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

from redis.asyncio.connection import ConnectionPool, RedisSSLContext, SSLConnection
from redis.credentials import CredentialProvider

from gardenbus.common.adapters.redis.addresses import RedisAddresses
from gardenbus.common.errors import SettingsInvalid

PASSWORD_FILE = "GARDENBUS_REDIS_PASSWORD_FILE"  # noqa: S105  the name of a variable
SENTINEL_PASSWORD_FILE = "GARDENBUS_REDIS_SENTINEL_PASSWORD_FILE"  # noqa: S105  the same
CA = "GARDENBUS_REDIS_CA"


class RedisAccess(NamedTuple):
    """Files that a connection needs; empty ones are not used."""

    password_file: str = ""
    """Holds the password of the URL's user."""
    ca: str = ""
    """Authorities that the server's certificate may be of."""
    sentinel_password_file: str = ""
    """Holds the password of the URL's `sentinel_username`."""


class _PasswordFile(CredentialProvider):
    """User and password, read anew at each connect: a password that changes needs no restart."""

    def __init__(self, user: str | None, file: Path) -> None:
        self._user = user
        self._file = file

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        """Read them. Raises OSError, which a connection takes for an outage."""
        password = self._file.read_text(encoding="utf-8").strip()
        return (self._user, password) if self._user else (password,)

    async def get_credentials_async(self) -> tuple[str] | tuple[str, str]:
        """Read them; the file is small and local."""
        return self.get_credentials()


class _Trust:
    """The settings of TLS that the connections of a pool share, made anew when one of their files is another one.

    Each connection would read all authorities of the system again, 20 ms and a megabyte of it.
    """

    def __init__(self) -> None:
        self._context: ssl.SSLContext | None = None
        self._files: list[tuple[int, int] | None] = []

    def context(self, given: RedisSSLContext) -> ssl.SSLContext:
        """The settings that the options of the URL select. Raises OSError where a file is none."""
        untyped = cast("Any", given)
        files = [_stamp(file) for file in (untyped.ca_certs, untyped.certfile, untyped.keyfile)]
        if self._context is None or files != self._files:
            untyped.context = None  # what it has made before
            self._context, self._files = cast("ssl.SSLContext", untyped.get()), files
        return self._context


def _stamp(file: str | None) -> tuple[int, int] | None:
    status = Path(file).stat() if file else None
    return (status.st_ino, status.st_mtime_ns) if status is not None else None


class _TlsConnection(SSLConnection):
    """A connection whose context is shared."""

    def __init__(self, *, trust: _Trust, **options: Any) -> None:
        super().__init__(**options)  # pyright: ignore[reportUnknownMemberType]
        self._trust = trust

    async def connect(self) -> None:
        """Connect, encrypt and authenticate. Raises OSError, RedisError."""
        self.ssl_context.context = self._trust.context(self.ssl_context)
        await super().connect()

    async def disconnect(self, nowait: bool = False, *others: Any, **options: Any) -> None:  # noqa: FBT001, FBT002
        """Close; with `nowait` the socket, too: the end of TLS would be waited for in vain where a server hangs."""
        if nowait and self._writer is not None and not self._writer.transport.is_closing():
            self._writer.transport.abort()
        await super().disconnect(nowait, *others, **options)


def check_access(url: str, access: RedisAccess) -> None:
    """Raise SettingsInvalid when the files cannot be used with this URL."""
    parts = urlsplit(url)
    problems: list[str] = []
    if access.password_file:
        if parts.password or "password=" in parts.query:
            problems.append(f"{PASSWORD_FILE}: GARDENBUS_REDIS_URL has a password too; take it out of the URL")
        problems += _unreadable(PASSWORD_FILE, access.password_file)
    if access.ca:
        if parts.scheme != "rediss":
            problems.append(f"{CA}: only rediss:// connections use TLS; change the scheme of GARDENBUS_REDIS_URL")
        problems += _unreadable(CA, access.ca)
    if problems:
        raise SettingsInvalid(tuple(problems))


def connection_pool(url: str, access: RedisAccess, **options: Any) -> ConnectionPool:
    """The client's settings for new connections. Raises SettingsInvalid as `check_access` does."""
    check_access(url, access)
    if access.ca:
        options["ssl_ca_certs"] = access.ca
    pool = ConnectionPool.from_url(url, **options)  # pyright: ignore[reportUnknownMemberType]
    if pool.connection_class is SSLConnection:
        pool.connection_class = _TlsConnection
        pool.connection_kwargs["trust"] = _Trust()
    if access.password_file:
        user = pool.connection_kwargs.pop("username", None)
        pool.connection_kwargs["credential_provider"] = _PasswordFile(user, Path(access.password_file))
    return pool


def sentinel_login(addresses: RedisAddresses, access: RedisAccess) -> dict[str, Any]:
    """The client's options by which it comes in at Sentinels. Raises SettingsInvalid where there are two."""
    file = access.sentinel_password_file
    if addresses.sentinel_password and not file:
        return {"username": addresses.sentinel_username or None, "password": addresses.sentinel_password}
    if not file:
        return {}
    problems = _unreadable(SENTINEL_PASSWORD_FILE, file)
    if addresses.sentinel_password:
        problems.append(f"{SENTINEL_PASSWORD_FILE}: GARDENBUS_REDIS_URL has a password of the Sentinels too")
    if addresses.has_same_login:
        problems.append(f"{SENTINEL_PASSWORD_FILE}: GARDENBUS_REDIS_URL has sentinel_login=same; take out one of them")
    if problems:
        raise SettingsInvalid(tuple(problems))
    return {"credential_provider": _PasswordFile(addresses.sentinel_username or None, Path(file))}


def _unreadable(variable: str, file: str) -> list[str]:
    try:
        with Path(file).open("rb") as opened:
            opened.read(1)
    except OSError as error:
        return [f"{variable}: {file} cannot be read: {error.strerror or error}"]
    return []
