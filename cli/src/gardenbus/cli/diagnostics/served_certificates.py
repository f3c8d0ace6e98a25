"""The authority of the certificates that NATS shows: read from the servers, not from files."""

import asyncio
import ssl
import time
from urllib.parse import urlsplit

from gardenbus.common.errors import Unavailable

WAIT_SECONDS = 15.0
"""Longest wait for a server that is to read another certificate."""

_RESPONSE_SECONDS = 5.0
_NATS_PORT = 4222


async def until_served(nats_url: str, authority: str, *, within_seconds: float = WAIT_SECONDS) -> None:
    """Wait until each server that uses TLS shows a certificate of an authority (PEM).

    Raises Unavailable, naming the one that does not.
    """
    context = ssl.create_default_context(cadata=authority)
    for url in nats_url.split(","):
        deadline = time.monotonic() + within_seconds
        while problem := await _problem(url, context):
            if time.monotonic() > deadline:
                raise Unavailable(f"{url.rsplit('@', 1)[-1]}: {problem}")
            await asyncio.sleep(0.1)


async def _problem(url: str, context: ssl.SSLContext) -> str:
    """Reason why a server is not trusted by this authority alone; "" if it is, or uses no TLS."""
    parts = urlsplit(url if "://" in url else f"nats://{url}")
    try:
        async with asyncio.timeout(_RESPONSE_SECONDS):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port or _NATS_PORT)
            try:
                greeting = await reader.readline()
                if b'"tls_required":true' in greeting:
                    await writer.start_tls(context, server_hostname=parts.hostname)
            finally:
                writer.close()
    except TimeoutError:
        return "it does not respond"
    except ssl.SSLCertVerificationError:
        return "it shows a certificate of the old authority: have it read the new one (SIGHUP), then --finish again"
    except OSError as error:
        return str(error.strerror or error)
    return ""
