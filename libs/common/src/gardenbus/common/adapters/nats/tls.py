"""TLS of connections to NATS: the server's certificate is checked, and who wants TLS sends nothing in clear."""

import asyncio
import ssl
from collections.abc import MutableMapping
from typing import Any
from urllib.parse import ParseResult

from nats.aio.transport import TcpTransport
from nats.errors import Error as NatsError

from gardenbus.common.errors import SettingsInvalid

WEB_SOCKETS = ("ws", "wss")
"""Schemes whose TLS, if they have one, is under way before the server says anything."""


class TlsMissing(NatsError):
    """A server offers no TLS to who wants it."""


_PING, _PONG = b"PING\r\n", b"PONG\r\n"


class Transport(TcpTransport):
    """The client's, with a stream that knows that it is encrypted and does not read on while nobody takes what came."""

    async def readline(self) -> bytes:
        """A line by which the server greets a client, or lets it in. Raises ConnectionResetError at the end of them.

        A server whose auth callout is under way pings meanwhile, and the client takes whatever it reads here, but
        for an error, for its being let in.
        """
        while (line := await super().readline()) == _PING:
            self.write(_PONG)
        if not line:
            raise ConnectionResetError("the server closed the connection without a word")
        return line

    async def connect_tls(
        self, uri: str | ParseResult, ssl_context: ssl.SSLContext, buffer_size: int, connect_timeout: int
    ) -> None:
        """Shake hands on the open connection."""
        del buffer_size
        writer = self._io_writer
        assert writer is not None
        name = uri if isinstance(uri, str) else uri.hostname
        await asyncio.wait_for(writer.start_tls(ssl_context, server_hostname=name), connect_timeout)


def tls_context(ca: str) -> ssl.SSLContext:
    """Trust in the authorities of a file, PEM. Raises SettingsInvalid, naming it, when it cannot be used."""
    try:
        return ssl.create_default_context(cafile=ca)
    except OSError as error:
        raise SettingsInvalid((f"{ca}: no authority can be read: {error.strerror or error}",)) from error


def demand_tls(info: MutableMapping[str, Any], scheme: str, ca: str | None) -> None:
    """Have a connection by `tls://`, or with authorities, use TLS, from the server's INFO.

    Raises TlsMissing when the server offers none: somebody in between may have taken it out, to read what is sent.
    """
    if scheme in WEB_SOCKETS or not (ca or scheme == "tls"):
        return
    if not (info.get("tls_required") or info.get("tls_available")):
        raise TlsMissing("nats: the server offers no TLS, without which nothing is sent to it")
    info["tls_required"] = True


def untrusted_server(error: BaseException, ca: str | None) -> str:
    """Words for a server that shows no certificate that is trusted; "" for another error."""
    if isinstance(error, TlsMissing):
        return "it offers no TLS, which this address or --ca demands"
    if not isinstance(error, ssl.SSLCertVerificationError):
        return ""
    trusted = f"the authorities in {ca}" if ca else "the system's authorities; GARDENBUS_NATS_CA names others"
    return f"its certificate is rejected ({error.verify_message}) by {trusted}"
