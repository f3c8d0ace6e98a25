"""Connections of the agents of one process: an agent that has credentials of its own connects by itself.

| an agent's credentials                                                   | its connection                           |
|--------------------------------------------------------------------------|------------------------------------------|
| `credentials.pem`, `.json` or `.nk` in its directory                     | its own                                  |
| `bootstrap-token` there                                                  | its own, once it has its certificate     |
| else the process's (`GARDENBUS_NATS_CREDENTIALS`), which name this agent | its own                                  |
| else the process's, of a service or an operator; or none                 | the process's, which many agents share   |

A file that changes is tried out on a second connection, then taken over by the first. A connection whose session will
soon end is renewed before that, and so is the certificate in `credentials.pem` (`certificate_manager`). One that the
server rejects is tried again, with growing pauses (`Connection`).
"""

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import structlog

from gardenbus.agent.certificate_manager import CertificateManager, remove_certificate
from gardenbus.agent.certificate_requests import CREDENTIALS, TOKEN, Send
from gardenbus.agent.settings import AgentSettings
from gardenbus.common.adapters.nats import jetstream
from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.credentials import (
    NO_CREDENTIALS,
    Credentials,
    Login,
    certificate_credentials,
    login_credentials,
    read_credentials,
)
from gardenbus.common.adapters.nats.jetstream import JetStreamBus
from gardenbus.common.api.configuration.gardenlet import DEFAULT_CERTIFICATE, CertificateSettings
from gardenbus.common.api.identity.bootstrap_tokens import Token
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import Subjects
from gardenbus.common.controller.api_client import ApiserverClient
from gardenbus.common.errors import GardenbusError, SettingsInvalid
from gardenbus.common.runtime.bus_connection import connect_bus, nats_credentials
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.common.runtime.service import ServiceContext

CREDENTIALS_FILES = ("credentials.pem", "credentials.json", "credentials.nk")
WATCH_SECONDS = 2.0
"""Interval at which files of credentials are looked at."""

CANCELLED_AGAIN_SECONDS = 5.0
"""Time after which a task that is to end is cancelled anew: a client's library may have swallowed that."""

REJECTED_SECONDS = 30.0
"""Pause after new credentials that the server rejects, while the old ones still hold."""

SESSION_SECONDS = 3600.0
"""Life of a session until one was seen to end: the identity service's default."""

BOOTSTRAPS_AT_ONCE = 4
"""Agents of a process that come in by a token at the same time: each has the callout check it."""

AnyAgentSettings = TypeVar("AnyAgentSettings", bound=AgentSettings)

_RENEWED = (0.7, 0.9)
"""Part of a session's life after which it is renewed, drawn anew for each: many agents do not come together."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class OwnConnection:
    """Connection of one agent. `bus` may be used at once: it raises Unavailable until it is connected."""

    def __init__(
        self,
        url: str,
        subjects: Subjects,
        principal: Principal,
        credentials: Credentials,
        bootstraps: asyncio.Semaphore | None = None,
        certificate: CertificateSettings = DEFAULT_CERTIFICATE,
    ) -> None:
        self.principal = principal
        self.bus = JetStreamBus(subjects, credentials=credentials)
        self._bootstraps = bootstraps or asyncio.Semaphore()
        self._url = url
        self._subjects = subjects
        self._credentials = credentials
        self._stamp = _stamp(credentials.file)
        self._part = random.uniform(*_RENEWED)
        self._session_began = 0.0
        self._not_before = 0.0
        self._task: asyncio.Task[None] | None = None
        self._opened = asyncio.Event()
        file = credentials.file
        is_managed = file is not None and file.name == CREDENTIALS
        self._manager = (
            CertificateManager(principal, file.parent, SystemClock(), certificate) if file and is_managed else None
        )
        self.is_renewal_demanded: Callable[[], bool] = lambda: False
        """True while somebody demands a new certificate."""

    async def opened(self) -> None:
        """Wait until it was connected for the first time."""
        await self._opened.wait()

    @property
    def problem(self) -> str | None:
        """Reason why nothing can be sent, None when the connection is up."""
        return None if self.bus.connected else f"not connected as {self.principal.user}"

    @property
    def certificate_expires_at(self) -> datetime | None:
        """The end of the certificate that is renewed here; None without one."""
        return self._manager.expires_at if self._manager is not None else None

    @property
    def is_rejected(self) -> bool:
        """True while the server rejects the login."""
        return self.bus.connection.is_rejected

    def remove_certificate(self) -> None:
        """Remove a certificate that lets nobody in any more, as what it was for has gone. Raises OSError."""
        file = self._credentials.file
        if self._manager is not None and file is not None and file.is_file() and not self._manager.needs_bootstrap:
            remove_certificate(file.parent)
            log.info("certificate.removed", user=self.principal.user)

    def needs_token(self, since: datetime) -> bool:
        """True while the server rejects a certificate that has ended, or was issued before `since`."""
        manager = self._manager
        return manager is not None and self.is_rejected and manager.is_outdated(since)

    def start(self) -> None:
        """Begin to connect."""
        self._task = self._task or asyncio.create_task(self._run(), name=f"connection of {self.principal.user}")

    async def close(self) -> None:
        """Flush and close."""
        try:
            while (task := self._task) is not None and not task.done():
                task.cancel()
                await asyncio.wait((task,), timeout=CANCELLED_AGAIN_SECONDS)
            if task is not None and not task.cancelled():
                task.exception()  # it is logged, or of no interest any more
        finally:
            await self.bus.close()

    async def _run(self) -> None:
        if self._manager is not None:
            await self._manager.bootstrap(self._come_in)
            self._stamp = _stamp(self._credentials.file)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch(), name=f"credentials of {self.principal.user}")
            if self._manager is not None:
                renewal = self._manager.run(self._client(self.bus), self._is_demanded, self._come_in)
                tasks.create_task(renewal, name=f"certificate of {self.principal.user}")
            await self.bus.open(self._url, self.principal.user)
            self._opened.set()
            log.info("agent.connected", credentials=str(self._credentials))

    def _is_demanded(self) -> bool:
        return self.is_renewal_demanded()

    @contextlib.asynccontextmanager
    async def _come_in(self, token: Token) -> AsyncGenerator[Send]:
        """Connect by a bootstrap token, for requests about certificates alone."""
        login = Login(token.user, token.secret)
        credentials = login_credentials(login, self._credentials.ca)
        connecting = jetstream.connect(
            self._url,
            login.user,
            self._subjects.prefix,
            credentials=credentials,
            manages_streams=False,
            fails_unauthorized=True,
        )
        async with contextlib.AsyncExitStack() as stack:
            async with self._bootstraps:
                bus = await stack.enter_async_context(connecting)
            yield ApiserverClient(bus, self._subjects, user=login.user).request

    def _client(self, bus: JetStreamBus) -> Send:
        return ApiserverClient(bus, self._subjects, user=self.principal.user).request

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(WATCH_SECONDS * random.uniform(0.75, 1.25))
            try:
                await self._renew_when_due()
            except Exception:
                log.exception("credentials.unwatched", credentials=str(self._credentials))

    async def _renew_when_due(self) -> None:
        stamp = _stamp(self._credentials.file)
        connection = self.bus.connection
        if stamp != self._stamp and stamp is not None and time.monotonic() >= self._not_before:
            if not self._is_usable():
                self._stamp = stamp
            elif not connection.is_connected:
                self._stamp = stamp
                connection.retry_now()
            elif await self._is_accepted():
                self._stamp = stamp
                log.info("credentials.renewed", credentials=str(self._credentials))
                await connection.renew()
            else:
                self._not_before = time.monotonic() + REJECTED_SECONDS
        elif connection.is_connected and self._session_is_ending(connection):
            await connection.renew()

    def _session_is_ending(self, connection: Connection) -> bool:
        if connection.connected_at != self._session_began:
            self._session_began, self._part = connection.connected_at, random.uniform(*_RENEWED)
        life = connection.session_seconds or SESSION_SECONDS
        return time.monotonic() - connection.connected_at >= life * self._part

    def _is_usable(self) -> bool:
        """True if the file holds credentials of this agent; else that is logged, once a change."""
        file = self._credentials.file
        assert file is not None
        try:
            _check_owner(read_credentials(file, self.principal), self.principal)
        except SettingsInvalid as error:
            log.error("credentials.rejected", problems=error.problems)  # noqa: TRY400 - no traceback is needed
            return False
        return True

    async def _is_accepted(self) -> bool:
        """Try the credentials out on another connection."""
        probe = Connection()
        try:
            await probe.open(
                self._url,
                f"{self.principal.user} (trial)",
                credentials=self._credentials,
                on_reconnect=lambda: None,
                fails_unauthorized=True,
            )
        except GardenbusError as error:
            log.warning("credentials.rejected", credentials=str(self._credentials), reason=error.message)
            return False
        finally:
            with contextlib.suppress(Exception):
                await probe.close()
        return True


class AgentConnections:
    """See the module. `process` are the process's credentials; `share` connects its bus, when it is first needed.

    `all_share`: it is everybody's, whatever lies in their directories.
    """

    def __init__(
        self,
        url: str,
        subjects: Subjects,
        process: Credentials = NO_CREDENTIALS,
        *,
        share: Callable[[], None] = lambda: None,
        all_share: bool = False,
    ) -> None:
        self._url = url
        self._subjects = subjects
        self._process = process
        self._share = share
        self._all_share = all_share
        self._is_shared = False
        self._bootstraps = asyncio.Semaphore(BOOTSTRAPS_AT_ONCE)

    def own(
        self, principal: Principal, directory: Path, certificate: CertificateSettings = DEFAULT_CERTIFICATE
    ) -> OwnConnection | None:
        """The connection of an agent with credentials of its own, None without. Raises SettingsInvalid."""
        credentials = None if self._all_share else own_credentials(principal, directory, self._process)
        if credentials is None:
            return None
        return OwnConnection(self._url, self._subjects, principal, credentials, self._bootstraps, certificate)

    def need_shared(self) -> None:
        """Have the process's bus connected."""
        if not self._is_shared:
            self._is_shared = True
            self._share()


async def connect_agents(
    context: ServiceContext[AnyAgentSettings],
    agents: Mapping[Principal, Path],
    *,
    needs_shared: bool = False,
    awaited_streams: Sequence[str],
) -> tuple[JetStreamBus, AgentConnections]:
    """The process's bus, and the connections of agents (principal → directory).

    The bus is connected if one of them needs it, or `needs_shared`; else as soon as one does. Raises SettingsInvalid
    with the problems of all credentials.
    """
    settings, subjects = context.settings, Subjects(context.settings.prefix)
    process = nats_credentials(settings, context.name)
    problems: list[str] = []
    for principal, directory in () if settings.shared_connection else agents.items():
        try:
            needs_shared |= own_credentials(principal, directory, process) is None
        except SettingsInvalid as error:
            problems += error.problems
    if problems:
        raise SettingsInvalid(tuple(problems))
    all_share = settings.shared_connection
    if needs_shared or all_share:
        bus, _ = await connect_bus(context, manages_streams=False, awaited_streams=awaited_streams)
        return bus, AgentConnections(settings.nats_url, subjects, process, all_share=all_share)
    bus = JetStreamBus(subjects, credentials=process)
    context.stack.push_async_callback(bus.close)

    def share() -> None:
        context.spawn("shared connection", bus.open(settings.nats_url, f"{context.name}-{context.instance}"))

    return bus, AgentConnections(settings.nats_url, subjects, process, share=share)


def own_credentials(principal: Principal, directory: Path, process: Credentials) -> Credentials | None:
    """Credentials of an agent, None when it shares the process's connection.

    Raises SettingsInvalid for a file that cannot be used, and for credentials of somebody else.
    """
    for name in CREDENTIALS_FILES:
        file = directory / name
        if file.is_file():
            return _check_owner(read_credentials(file, principal, process.ca), principal)
    if (directory / TOKEN).is_file():
        return certificate_credentials(directory / CREDENTIALS, principal, process.ca)
    if not process.is_outsider:
        return None
    try:
        return _check_owner(process, principal)
    except SettingsInvalid as error:
        suggestion = f"put those of {principal.user} into {directory / CREDENTIALS_FILES[0]}"
        raise SettingsInvalid(tuple(f"{each}; {suggestion}" for each in error.problems)) from error


def _check_owner(credentials: Credentials, principal: Principal) -> Credentials:
    if credentials.principal != principal:
        raise SettingsInvalid((f"{principal.user} cannot connect with the credentials of {credentials}",))
    return credentials


def _stamp(file: Path | None) -> tuple[int, int, int] | None:
    if file is None:
        return None
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size
