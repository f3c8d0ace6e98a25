"""Addresses at which nothing answers: what is said of them, and that it is said soon."""

import socket
import threading

import pytest

from gardenbus.cli.client import reachability
from gardenbus.cli.client.reachability import check_reachable
from gardenbus.common.errors import Unavailable
from gardenbus.common.runtime import event_loop


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reachability, "_CONNECTING_SECONDS", 0.1)


def reported_for(urls: str) -> str:
    """Checked as a command does."""
    with pytest.raises(Unavailable) as raised:
        event_loop.run(check_reachable(urls))
    return raised.value.message


@pytest.mark.usefixtures("soon")
def test_a_name_server_that_says_nothing(monkeypatch: pytest.MonkeyPatch):
    released = threading.Event()

    def waiting(*_: object) -> list[object]:
        released.wait()
        return []

    monkeypatch.setattr(socket, "getaddrinfo", waiting)
    try:
        assert "no name server has resolved the host dead within 0.1 s" in reported_for("nats://dead:4222")
        assert not released.is_set()
    finally:
        released.set()


@pytest.mark.usefixtures("soon")
def test_a_port_that_swallows_what_is_sent():
    with socket.socket() as full, socket.socket() as first:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        first.connect(full.getsockname())  # the only place; who comes next is left without a response
        port = full.getsockname()[1]
        assert f"port {port} of 127.0.0.1 does not respond" in reported_for(f"nats://127.0.0.1:{port}")


def test_each_of_several_addresses_is_named():
    reported = reported_for("nats://127.0.0.1:1,nats://-.invalid:2")
    assert reported.startswith("no NATS at nats://127.0.0.1:1,nats://-.invalid:2: port 1 refuses connections: ")
    assert reported.endswith("; the host -.invalid is not found (is its name right?)")
