"""Requests of an agent for a certificate of its own name, over a connection that may do nothing else.

The request and its new key lie in `certificate-request.pem` until the certificate is there: an agent that is killed in
between sends the same again (signed anew it would be another one), and gets what was issued meanwhile. Certificate and
key become one file by renaming.

    credentials.pem            the certificate and its key
    certificate-request.pem    a request under way, and its key
    bootstrap-token            the token of an agent that has no certificate yet; gone afterwards
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import structlog

from gardenbus.agent.domain.rotation import (
    REQUEST_TIMEOUT,
    expiration_seconds,
    issued_certificate,
    rejection_of,
    request_name,
)
from gardenbus.common.api.configuration.gardenlet import DEFAULT_CERTIFICATE, CertificateSettings
from gardenbus.common.api.document import Document
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.identity.signing_requests import new_signing_request
from gardenbus.common.controller.backoff import Backoff
from gardenbus.common.errors import BadRequest, Conflict, Forbidden, NotFound
from gardenbus.common.ports.clock import Clock
from gardenbus.credentials import secret_files
from gardenbus.credentials.certificates import (
    PrivateKey,
    key_digest,
    key_pem,
    new_key,
    new_request,
    read_certificate,
    read_key,
    requested_principal,
)

CREDENTIALS = "credentials.pem"
REQUEST = "certificate-request.pem"
TOKEN = "bootstrap-token"  # noqa: S105 - a file's name
_POLLS = Backoff(base_seconds=0.2, cap_seconds=5.0)

Send = Callable[[str, object], Awaitable[Any]]
"""Sends a request below `api.` and returns its result. Raises the errors of ApiserverClient."""

_BEGINNING = b"-----BEGIN CERTIFICATE REQUEST-----"

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class _OpenRequest(NamedTuple):
    key: PrivateKey
    pem: bytes


class CertificateRequests:
    """Obtains certificates of one agent, and writes them to its directory."""

    def __init__(
        self,
        principal: Principal,
        directory: Path,
        clock: Clock,
        settings: CertificateSettings = DEFAULT_CERTIFICATE,
    ) -> None:
        self._principal = principal
        self._directory = directory
        self._clock = clock
        self._settings = settings

    async def obtain(self, send: Send) -> None:
        """Send requests until there is a certificate, and write it. Raises Forbidden when it is denied, Transient."""
        while True:
            request = self._request()
            name = request_name(self._principal, key_digest(request.pem))
            certificate = await self._certificate(send, name, request.pem)
            if certificate is not None:
                self._write(certificate, request.key)
                log.info("certificate.obtained", user=self._principal.user, request=name)
                return
            log.warning("request.timed_out", user=self._principal.user, request=name)
            self._forget()

    async def _certificate(self, send: Send, name: str, pem: bytes) -> bytes | None:
        """The certificate for a request; None when nobody has decided on it in time. Raises Forbidden."""
        until = self._clock.monotonic() + REQUEST_TIMEOUT.total_seconds()
        try:
            life = expiration_seconds(self._settings)
            request: Document = await send("csr.create", new_signing_request(name, pem, expiration_seconds=life))
        except Conflict:  # it was sent by another token, which was lost since
            self._forget()
            raise
        pauses = _POLLS.pauses()
        while self._clock.monotonic() < until:
            if certificate := issued_certificate(request):
                return certificate
            if rejection := rejection_of(request):
                self._forget()
                raise Forbidden(f"the request {name} for a certificate of {self._principal.user}: {rejection}")
            await self._clock.sleep(next(pauses))
            try:
                request = await send("csr.get", {"name": name})
            except NotFound:
                return None
        return None

    def _request(self) -> _OpenRequest:
        """A request under way, or a new one, which is kept before anybody hears of it."""
        file = self._directory / REQUEST
        try:
            content = file.read_bytes()
            pem = content[content.index(_BEGINNING) :]
            if requested_principal(pem) == self._principal:
                return _OpenRequest(read_key(content), pem)
        except (FileNotFoundError, ValueError, BadRequest):
            pass
        key = new_key()
        pem = new_request(self._principal, key)
        secret_files.make_directory(self._directory)
        secret_files.write(file, key_pem(key) + pem)
        return _OpenRequest(key, pem)

    def _forget(self) -> None:
        (self._directory / REQUEST).unlink(missing_ok=True)

    def _write(self, certificate: bytes, key: PrivateKey) -> None:
        """Write both as one file. Raises Forbidden for the certificate of another key."""
        if read_certificate(certificate).public_key() != key.public_key():
            self._forget()
            raise Forbidden("the certificate that was issued is of another key")
        secret_files.write(self._directory / CREDENTIALS, certificate + key_pem(key))
        self._forget()
        (self._directory / TOKEN).unlink(missing_ok=True)
