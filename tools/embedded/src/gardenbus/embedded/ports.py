"""Ports on the loopback: the ones of last time when they are free, else any."""

import secrets
import socket
import sys

LOOPBACK = "127.0.0.1"

PORTS = range(20_000, 32_768)
"""Ports to choose from: below those that systems give to outgoing connections (Linux from 32768, others from 49152).
One of these could take a port after it was found free, before its service listens."""


class PortInUse(Exception):
    """Another process listens on the requested port."""


def is_free(port: int) -> bool:
    """True if no process listens on the port (lingering connections of last time do not count)."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


class ReservedPort:
    """Mark of a well-known port that a landscape is about to use, until it is released. Raises PortInUse.

    Of two landscapes that start at once both find the port free. The mark is a name that Linux keeps beside the ports
    of the machine; elsewhere there is none.
    """

    def __init__(self, port: int) -> None:
        self._mark = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            if sys.platform == "linux":
                self._mark.bind(f"\0gardenbus-port-{port}")
        except OSError as error:
            self._mark.close()
            raise PortInUse(f"port {port} is another landscape's") from error

    def release(self) -> None:
        """Let others have the port."""
        self._mark.close()


def choose_port(wanted: int | None, previous: int | None, in_use: set[int]) -> int:
    """The port wanted, else the previous one, else a free one; `in_use` are excluded, and grow by the result.

    Raises PortInUse when the wanted one is not free.
    """
    if wanted is not None:
        if wanted in in_use or not is_free(wanted):
            raise PortInUse(f"port {wanted} is in use: choose another, or leave it out for a free one")
        in_use.add(wanted)
        return wanted
    if previous is not None and previous not in in_use and is_free(previous):
        in_use.add(previous)
        return previous
    while True:
        port = secrets.choice(PORTS)
        if port not in in_use and is_free(port):
            in_use.add(port)
            return port
