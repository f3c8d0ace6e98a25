"""Serves NATS' auth callout."""

from datetime import timedelta
from typing import Protocol

import structlog
from cryptography import x509

from gardenbus.common.api.identity.nkeys import KeyPair
from gardenbus.common.api.keys import Subjects
from gardenbus.common.controller.repeated_lines import RepeatedLines
from gardenbus.common.errors import Forbidden
from gardenbus.common.ports.clock import Clock
from gardenbus.identity import metrics
from gardenbus.identity.domain.authentication import Authenticated, Facts, authenticate, grant
from gardenbus.identity.domain.connection_loads import ConnectionLoads
from gardenbus.identity.domain.tokens import denied, granted, read_request, user_token
from gardenbus.identity.watch.credentials_cache import CredentialsCache

REMEMBERED_CERTIFICATES = 50_000
"""Certificates whose users a replica remembers; a revocation by serial number disconnects those."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class Authorities(Protocol):
    """The certificate authorities that are trusted now."""

    def __call__(self) -> tuple[x509.Certificate, ...]:
        """Their certificates."""
        ...


class CalloutHandler:
    """Lets connections in, or keeps them out."""

    def __init__(  # noqa: PLR0913  (what the service consists of)
        self,
        *,
        cache: CredentialsCache,
        authorities: Authorities,
        issuer: KeyPair,
        subjects: Subjects,
        clock: Clock,
        session: timedelta,
        loads: ConnectionLoads,
    ) -> None:
        self._cache = cache
        self._authorities = authorities
        self._issuer = issuer
        self._subjects = subjects
        self._clock = clock
        self._session = session
        self._loads = loads
        self._users: dict[str, str] = {}
        self._lines = RepeatedLines("connection.rejected", clock.monotonic)

    def respond(self, token: str) -> str:
        """The response to a server's request. Raises BadRequest when it is no request of a server's."""
        request = read_request(token)
        now = self._clock.now()
        issued_at = int(now.timestamp())
        facts = Facts(self._authorities(), self._cache.issued, self._cache.revoked, now)
        try:
            found = authenticate(request, facts)
            own = grant(found, self._subjects, now, self._session)
            self._loads.admit(own.name, self._clock.monotonic())
        except Forbidden as error:
            metrics.CALLOUTS.labels("refused").inc()
            about = request.client_info
            self._lines.warn(about.host, error.message, reason=error.message, host=about.host, client=about.name[:80])
            return denied(request, error.message, self._issuer, issued_at)
        metrics.CALLOUTS.labels("granted").inc()
        if found.serial:
            self._users[found.serial] = found.principal.user
            if len(self._users) > REMEMBERED_CERTIFICATES:
                self._users.pop(next(iter(self._users)))
        self._log_granted(found, request.client_info.host)
        return granted(request, user_token(own, request.user_nkey, self._issuer, issued_at), self._issuer, issued_at)

    def user_of(self, serial: str) -> str | None:
        """The user that this replica has let in by a certificate; None when it has not."""
        return self._users.get(serial)

    def _log_granted(self, found: Authenticated, host: str) -> None:
        expires = found.expires.isoformat()
        log.info("connection.granted", user=found.principal.user, host=host, serial=found.serial, expires=expires)
