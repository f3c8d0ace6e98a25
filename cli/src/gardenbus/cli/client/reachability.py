"""Reachability of NATS at its addresses, in the words for what is wrong.

Called only after a connect failed: a server with TLS logs an error for each connection that is closed without it.
"""

import asyncio
import socket
from urllib.parse import urlsplit

from gardenbus.common.adapters.addresses import without_user
from gardenbus.common.errors import Unavailable

_PORTS = {"ws": 80, "wss": 443}
_NATS_PORT = 4222
_GREETING_SECONDS = 1.0
_CONNECTING_SECONDS = 2.0
"""Longest wait for the name server, and then for the host: a name or packets that vanish would take minutes."""


async def check_reachable(urls: str) -> None:
    """Return when what takes a connection at one of the addresses (commas between) may be NATS. Raises Unavailable."""
    problems = await asyncio.gather(*map(_problem_of, urls.split(",")))
    if all(problems):
        raise Unavailable(f"no NATS at {without_user(urls)}: {'; '.join(problems)}")


async def _problem_of(address: str) -> str:
    """The reason why there is no connection to an address; "" when there is one."""
    parts = urlsplit(address if "://" in address else f"nats://{address}")
    host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, _NATS_PORT)
    try:
        async with asyncio.timeout(_CONNECTING_SECONDS):
            await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except TimeoutError:
        return f"no name server has resolved the host {host} within {_CONNECTING_SECONDS:g} s (is its name right?)"
    except (socket.gaierror, UnicodeError):
        return f"the host {host} is not found (is its name right?)"
    try:
        async with asyncio.timeout(_CONNECTING_SECONDS):
            reader, writer = await asyncio.open_connection(host, port)
    except TimeoutError:
        return f"port {port} of {host} does not respond (is the machine up, and no firewall in between?)"
    except ConnectionRefusedError:
        return f"port {port} refuses connections: nothing listens there (is the landscape, or its NATS, up?)"
    except OSError as error:
        return "no connection" if error.errno is None and not error.strerror else f"{error.strerror or error}".lower()
    try:
        return "" if parts.scheme in _PORTS else await _greeting_problem(reader, writer, port)
    finally:
        writer.close()


async def _greeting_problem(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> str:
    """The reason why what listens is no NATS server; "" for one, and for what is silent, as a NATS that hangs is."""
    try:
        async with asyncio.timeout(_GREETING_SECONDS):
            writer.write(b"PING\r\n")  # servers that wait for their client say what they are
            first = await reader.readline()
    except TimeoutError:
        return ""
    except (OSError, ValueError):
        first = b""
    shown = ascii(first[:40].decode("latin-1").strip())
    seen = f"it sent {shown}" if first else "it closes the connection"
    return "" if first.startswith(b"INFO ") else f"what listens on port {port} is no NATS server: {seen}"
