"""TLS of the server: its certificate, read anew when it has changed, and optional certificates of clients."""

import ssl
import time
from pathlib import Path

import structlog

from gardenbus.common.errors import SettingsInvalid

CHECK_SECONDS = 5.0
"""Shortest interval between two looks at the file of the certificate."""

_log = structlog.stdlib.get_logger()


def server_context(certificate: Path, key: Path, client_ca: str) -> ssl.SSLContext:
    """The context of the server. Raises SettingsInvalid for a file that cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    _load(context, certificate, key)
    if client_ca:
        try:
            context.load_verify_locations(cafile=client_ca)
        except (OSError, ssl.SSLError) as error:
            raise SettingsInvalid((f"GARDENBUS_KUBEAPI_CLIENT_CA: {client_ca}: {error}",)) from error
        context.verify_mode = ssl.CERT_OPTIONAL
    _keep_current(context, certificate, key)
    return context


def _load(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise SettingsInvalid((f"GARDENBUS_KUBEAPI_CERTIFICATE: {certificate}: {error}",)) from error


def _keep_current(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    """Have each handshake use the certificate that is in the file by then."""
    read, checked_at = _version(certificate), 0.0

    def check(_connection: object, _name: object, _context: object) -> None:
        nonlocal read, checked_at
        now = time.monotonic()
        if now - checked_at < CHECK_SECONDS:
            return
        checked_at = now
        version = _version(certificate)
        if version != read:
            try:
                _load(context, certificate, key)
            except SettingsInvalid as error:  # one of the two files is not written yet
                _log.warning("certificate.unreadable", reason=str(error))
            else:
                read = version

    context.sni_callback = check


def _version(file: Path) -> tuple[int, int]:
    try:
        status = file.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_ino
