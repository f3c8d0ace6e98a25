"""The page's listening socket, opened at the start; early connections wait in the kernel's backlog."""

import asyncio
import socket
from typing import NamedTuple

BACKLOG = 256


class Address(NamedTuple):
    """A listening socket and the URL that leads to it."""

    socket: socket.socket
    url: str


def listen_on(host: str, port: int) -> Address:
    """Listen (port 0: a free one). Raises OSError when the address is in use."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError:
        listening.close()
        raise
    listening.listen(BACKLOG)
    listening.setblocking(False)
    shown = "127.0.0.1" if host in {"0.0.0.0", "::", ""} else host  # noqa: S104 - only compared
    name = f"[{shown}]" if ":" in shown else shown
    return Address(listening, f"http://{name}:{listening.getsockname()[1]}")


async def first_visit(address: Address) -> None:
    """Return after the first connection (which stays in the backlog)."""
    loop = asyncio.get_running_loop()
    visited = asyncio.Event()
    loop.add_reader(address.socket.fileno(), visited.set)
    try:
        await visited.wait()
    finally:
        loop.remove_reader(address.socket.fileno())
