"""Manager of an agent's client certificate: the first one by a bootstrap token, and each next one before the last ends.

As client-go's `util/certificate`. Whoever uses `credentials.pem` looks at the file by itself: the manager only sees to
it that there is one. Of several processes with the same directory one at a time sends requests.
"""

import os
import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import structlog
from cryptography import x509

from gardenbus.agent.certificate_requests import CREDENTIALS, REQUEST, TOKEN, CertificateRequests, Send
from gardenbus.agent.domain.rotation import renewal_at
from gardenbus.agent.files import try_lock
from gardenbus.common.api.configuration.gardenlet import DEFAULT_CERTIFICATE, CertificateSettings
from gardenbus.common.api.identity.bootstrap_tokens import Token, parse_token
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.controller.backoff import Backoff
from gardenbus.common.errors import BadRequest, GardenbusError
from gardenbus.common.ports.clock import Clock
from gardenbus.credentials import secret_files
from gardenbus.credentials.certificates import issued_at, read_certificate

LOCK = "certificate.lock"
BROUGHT = ("credentials.json", "credentials.nk")
"""Credentials that nobody renews."""
CHECK_INTERVAL_SECONDS = 2.0
"""Interval at which the file and the demand for a renewal are checked."""

TOKEN_LIFE = timedelta(hours=1)
"""Life of a token that a gardenlet requests for another one. Source: Gardener's `gardenletdeployer`."""

Connect = Callable[[Token], AbstractAsyncContextManager[Send]]
"""Comes in with a bootstrap token."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class _Life(NamedTuple):
    begins: datetime
    ends: datetime


class CertificateManager:
    """See the module. `is_demanded`: a new certificate is demanded now, whatever the last one's age."""

    def __init__(
        self,
        principal: Principal,
        directory: Path,
        clock: Clock,
        settings: CertificateSettings = DEFAULT_CERTIFICATE,
        *,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._principal = principal
        self._directory = directory
        self._clock = clock
        self._draw = draw
        self._settings = settings
        self._requests = CertificateRequests(principal, directory, clock, settings)
        self._backoff = Backoff()
        self._failures = 0
        self._life: _Life | None = None
        self._renewal_at: datetime | None = None
        self._is_demand_met = False

    @property
    def expires_at(self) -> datetime | None:
        """The end of the certificate in the file; None without one."""
        life = self._read()
        return life.ends if life else None

    def is_outdated(self, since: datetime) -> bool:
        """True for a certificate that has ended, or was issued before `since`, and no token that replaces it."""
        life = self._read()
        if self.needs_bootstrap and not _has_old_token(self._directory, self._clock.now()):
            return False
        return life is None or life.ends <= self._clock.now() or life.begins < since.replace(microsecond=0)

    @property
    def needs_bootstrap(self) -> bool:
        """True while there is a token, and no certificate that lives and came after it (one may be revoked)."""
        life, token = self._read(), _written_at(self._directory / TOKEN)
        if token is None:
            return False
        return (
            life is None or life.ends <= self._clock.now() or token > (_written_at(self._directory / CREDENTIALS) or 0)
        )

    async def bootstrap(self, connect: Connect) -> None:
        """Obtain the first certificate, as long as that takes. Returns at once when there is one."""
        while self.needs_bootstrap:
            try:
                token = parse_token((self._directory / TOKEN).read_text())
                async with connect(token) as send:
                    await self._obtain(send)
            except FileNotFoundError:
                return  # another process has used it
            except (GardenbusError, OSError) as error:
                reason = error.message if isinstance(error, GardenbusError) else str(error)
                log.warning("bootstrap.failed", user=self._principal.user, reason=reason)
                await self._pause()

    async def run(
        self, send: Send, is_demanded: Callable[[], bool] = lambda: False, connect: Connect | None = None
    ) -> None:
        """Renew for ever, over the connection of the certificate that still lives, or by a token that comes."""
        while True:
            await self._clock.sleep(CHECK_INTERVAL_SECONDS)
            if connect is not None:
                await self.bootstrap(connect)
            demanded = is_demanded()
            if not self.is_due(is_demanded=demanded):
                continue
            try:
                await self._obtain(send)
                self._is_demand_met = demanded
                self._failures = 0
            except (GardenbusError, OSError) as error:
                reason = error.message if isinstance(error, GardenbusError) else str(error)
                log.warning("renewal.failed", user=self._principal.user, reason=reason)
                await self._pause()

    def is_due(self, *, is_demanded: bool) -> bool:
        """True when the certificate of the file is to be renewed now. One that ended cannot renew itself."""
        life, now = self._read(), self._clock.now()
        if life is None or self._renewal_at is None or life.ends <= now:
            return False
        if is_demanded and not self._is_demand_met:
            return True
        self._is_demand_met = is_demanded
        return now >= self._renewal_at

    async def _pause(self) -> None:
        """Wait before the next attempt, or until there is another token."""
        self._failures += 1
        token, delay = self._directory / TOKEN, self._backoff.delay_seconds(self._failures, self._draw())
        written, until = _written_at(token), self._clock.monotonic() + delay
        while (left := until - self._clock.monotonic()) > 0 and _written_at(token) in (written, None):
            await self._clock.sleep(min(left, CHECK_INTERVAL_SECONDS))

    async def _obtain(self, send: Send) -> None:
        descriptor = try_lock(self._directory / LOCK)
        if descriptor is None:  # another process does
            await self._clock.sleep(CHECK_INTERVAL_SECONDS)
            return
        try:
            await self._requests.obtain(send)
        finally:
            os.close(descriptor)

    def _read(self) -> _Life | None:
        """The life of the certificate in the file; a new one gets a new point of renewal."""
        try:
            certificate = read_certificate((self._directory / CREDENTIALS).read_bytes())
        except (OSError, BadRequest):
            self._life = self._renewal_at = None
            return None
        life = _life_of(certificate)
        if life != self._life:
            self._life = life
            self._renewal_at = renewal_at(life.begins, life.ends, self._draw(), self._settings)
        return life


def _written_at(file: Path) -> int | None:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return None


def _life_of(certificate: x509.Certificate) -> _Life:
    return _Life(issued_at(certificate), certificate.not_valid_after_utc)


def has_credentials(directory: Path, now: datetime) -> bool:
    """True for an agent that can come in: by a certificate that lives, a token, or what it brought along."""
    if any((directory / name).is_file() for name in BROUGHT):
        return True
    if (directory / TOKEN).is_file() and not _has_old_token(directory, now):
        return True
    try:
        certificate = read_certificate((directory / CREDENTIALS).read_bytes())
    except (OSError, BadRequest):
        return False
    return certificate.not_valid_after_utc > now


def remove_certificate(directory: Path) -> None:
    """Remove the certificate of an agent whose object was removed, what it requests, and its token. Raises OSError."""
    for name in (CREDENTIALS, REQUEST, TOKEN):
        (directory / name).unlink(missing_ok=True)


def _has_old_token(directory: Path, now: datetime) -> bool:
    """True for a token that has ended by now, as it lies there for longer than it lives."""
    written = _written_at(directory / TOKEN)
    return written is not None and now.timestamp() - written / 1e9 > TOKEN_LIFE.total_seconds()


def write_token(directory: Path, token: str) -> None:
    """Write the bootstrap token of an agent that is about to start."""
    secret_files.make_directory(directory)
    secret_files.write(directory / TOKEN, f"{token}\n".encode())
