"""Ports on the loopback: the ones of last time when they are free, else any."""

import socket

LOOPBACK = "127.0.0.1"


class PortTaken(Exception):
    """Somebody else listens on the port that was asked for."""


def is_free(port: int) -> bool:
    """Whether nobody listens there (connections of last time that linger do not count)."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def choose_port(wanted: int | None, previous: int | None, taken: set[int]) -> int:
    """The port wanted, else the previous one, else a free one; `taken` are spoken for and grow by the answer.

    Raises PortTaken when the wanted one is not free.
    """
    if wanted is not None:
        if wanted in taken or not is_free(wanted):
            raise PortTaken(f"port {wanted} is in use: choose another, or leave it out for a free one")
        taken.add(wanted)
        return wanted
    if previous is not None and previous not in taken and is_free(previous):
        taken.add(previous)
        return previous
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.bind((LOOPBACK, 0))
            port = int(probe.getsockname()[1])
        if port not in taken:
            taken.add(port)
            return port
