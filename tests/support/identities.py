"""A nats-server with accounts and the auth callout, and clients of every kind of principal."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from gardenbus.apiserver.requests.own_consumers import OwnConsumers
from gardenbus.common.adapters.nats import jetstream
from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.credentials import Credentials, Login, login_credentials, read_credentials
from gardenbus.common.api.document import StoredObject, split
from gardenbus.common.api.identity.bootstrap_tokens import Token, key_of_token, new_token_secret
from gardenbus.common.api.identity.nkeys import KeyPair
from gardenbus.common.api.identity.permissions import service_names
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import Subjects
from gardenbus.common.controller.budget_settings import BudgetSettings
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.credentials import secret_files
from gardenbus.credentials.certificates import Authority, new_authority
from gardenbus.credentials.new_nkeys import new_nkey
from gardenbus.credentials.server_configuration import Authorization, Password, authorization_configuration
from gardenbus.identity.adapters.callout import serve_callouts
from gardenbus.identity.adapters.system_account import system_account
from gardenbus.identity.controllers.connection_limits import ConnectionLimitsController
from gardenbus.identity.domain.connection_loads import ConnectionLoads
from gardenbus.identity.requests.callout import CalloutHandler
from gardenbus.identity.watch.credentials_cache import CredentialsCache
from tests.support.servers import Server, start_nats

SUBJECTS = Subjects()
OPERATOR_PASSWORD = "the operator's"


class Keys(NamedTuple):
    """Keys of a landscape."""

    services: dict[str, KeyPair]
    system: KeyPair
    callout: KeyPair
    issuer: KeyPair
    authority: Authority


def new_keys() -> Keys:
    """New keys for all."""
    return Keys(
        services={name: new_nkey("user") for name in service_names()},
        system=new_nkey("user"),
        callout=new_nkey("user"),
        issuer=new_nkey("account"),
        authority=Authority(new_authority("gardenbus", datetime.now(UTC))),
    )


def start_guarded_nats(directory: Path, keys: Keys, program: str = "") -> Server:
    """A nats-server that lets in the services of the keys, the operator, and whom the callout lets in."""
    authorization = Authorization(
        services={name: pair.public for name, pair in keys.services.items()},
        system=keys.system.public,
        operator=Password("operator", OPERATOR_PASSWORD),
        callout=keys.callout.public,
        issuer=keys.issuer.public,
    )
    return start_nats(
        directory,
        extra=authorization_configuration(authorization, SUBJECTS),
        login=f"operator:{OPERATOR_PASSWORD}",
        program=program,
    )


class Guarded:
    """The server, with an identity service beside it."""

    def __init__(self, server: Server, keys: Keys, cache: CredentialsCache, directory: Path) -> None:
        self.server = server
        self.keys = keys
        self.cache = cache
        self._directory = directory
        self._stack = contextlib.AsyncExitStack()

    def certificate_file(self, principal: Principal, life: timedelta = timedelta(days=1)) -> Path:
        """A file with a certificate of a principal, and its key."""
        issued = self.keys.authority.client(principal, datetime.now(UTC), life)
        file = self._directory / f"{principal.token}.pem"
        secret_files.write(file, issued.certificate + issued.key)
        return file

    def certify(self, principal: Principal, directory: Path, life: timedelta = timedelta(days=1)) -> None:
        """Put a certificate, and its key, where an agent looks for it."""
        issued = self.keys.authority.client(principal, datetime.now(UTC), life)
        directory.mkdir(parents=True, exist_ok=True)
        secret_files.write(directory / "credentials.pem", issued.certificate + issued.key)

    def service_file(self, name: str) -> Path:
        """A file with the nkey of a service."""
        file = self._directory / f"{name}.nk"
        secret_files.write(file, self.keys.services[name].seed.encode())
        return file

    def credentials(self, principal: Principal) -> Credentials:
        """Credentials of a principal, made for the occasion."""
        if principal.role == "service":
            return read_credentials(self.service_file(principal.name), principal.name)
        if principal.role == "operator":
            file = self._directory / "operator.json"
            secret_files.write(file, b'{"user": "operator", "password": "%b"}' % OPERATOR_PASSWORD.encode())
            return read_credentials(file, "")
        if principal.role == "bootstrap":
            return login_credentials(self._bootstrap_login(principal))
        return read_credentials(self.certificate_file(principal), "")

    def _bootstrap_login(self, principal: Principal) -> Login:
        """User and password of a bootstrap token, of which the identity service learns."""
        token, now = Token(principal.name, "0123456789abcdef"), datetime.now(UTC)
        secret = new_token_secret(token, expires=now + timedelta(days=1), bound_to=None, description="")
        key = key_of_token(token.id)
        stored = StoredObject(key=key, parts=split(secret), uid="u", version=1, generation=1, created_at="")
        self.cache.changed(key, None, stored)
        return Login(principal.user, token.secret)

    async def connect(self, principal: Principal) -> Connection:
        """A connection of a principal; closed in the end."""
        connection = Connection()
        await connection.open(
            self.server.url, principal.user, credentials=self.credentials(principal), on_reconnect=lambda: None
        )
        self._stack.push_async_callback(connection.close)
        return connection

    async def serve_consumers(self) -> None:
        """Make the consumers of outsiders, as the apiserver does."""
        credentials = self.credentials(Principal("service", "apiserver"))
        bus = await self._stack.enter_async_context(
            jetstream.connect(self.server.url, "apiserver", credentials=credentials, manages_streams=False)
        )
        await bus.serve("apiserver", "1.0.0", {SUBJECTS.consumer(">"): OwnConsumers(bus, SUBJECTS).handle})

    async def close(self) -> None:
        """Close all connections."""
        await self._stack.aclose()


@contextlib.asynccontextmanager
async def guarded(
    directory: Path, session: timedelta = timedelta(hours=1), *, program: str = ""
) -> AsyncGenerator[Guarded]:
    """A guarded server, of another version where a `program` is given, and its identity service."""
    directory.mkdir(parents=True, exist_ok=True)
    keys, cache = new_keys(), CredentialsCache(SystemClock().now)
    server = start_guarded_nats(directory / "nats", keys, program)
    loads = ConnectionLoads(BudgetSettings().of)
    handler = CalloutHandler(
        cache=cache,
        authorities=lambda: (keys.authority.certificate,),
        issuer=keys.issuer,
        subjects=SUBJECTS,
        clock=SystemClock(),
        session=session,
        loads=loads,
    )
    callout_file = directory / "callout.nk"
    secret_files.write(callout_file, keys.callout.seed.encode())
    system_file = directory / "system.nk"
    secret_files.write(system_file, keys.system.seed.encode())
    landscape = Guarded(server, keys, cache, directory)
    try:
        async with (
            system_account(server.url, "identity-system", read_credentials(system_file, "identity")) as system,
            serve_callouts(server.url, "identity", read_credentials(callout_file, "identity"), handler.respond),
        ):
            await landscape.serve_consumers()
            limits = asyncio.create_task(ConnectionLimitsController(system, loads, SystemClock()).run())
            yield landscape
            await landscape.close()
            limits.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await limits
    finally:
        server.stop()
