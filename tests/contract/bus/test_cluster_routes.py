"""Routes of a NATS cluster, on real servers: who lacks the password or the certificate stays outside."""

import asyncio
import json
import os
import signal
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from gardenbus.common.api.identity.principals import Principal
from gardenbus.credentials.certificates import Authority, new_authority
from gardenbus.credentials.routes import (
    AUTHORITY,
    CERTIFICATE,
    KEY,
    RouteAdmission,
    new_route_certificate,
    route_configuration,
)
from gardenbus.credentials.server_configuration import tls_configuration
from gardenbus.embedded.clusters import route_tls
from tests.support.eventually import eventually
from tests.support.servers import Server, executable, free_port


class Cluster(NamedTuple):
    """Two servers; where they expect others, and the ports of their monitors."""

    routes: list[str]
    monitors: list[int]
    admission: RouteAdmission
    stack: ExitStack
    servers: list[Server]


def start(stack: ExitStack, directory: Path, listen: str, others: list[str], admission: RouteAdmission) -> Server:
    """Start a server of the cluster; its port is its monitor's."""
    directory.mkdir()
    file, monitor = directory / "nats.conf", free_port()
    text = route_configuration(name="gardenbus", listen=listen, others=others, admission=admission)
    file.write_text(
        f'server_name: "{directory.name}"\nlisten: "127.0.0.1:{free_port()}"\nhttp: "127.0.0.1:{monitor}"\n{text}'
    )
    command = (executable("nats-server"), "-c", str(file))
    server = Server("", monitor, directory, command, lambda port: routes_of(port) is not None)
    server.start()
    stack.callback(server.kill)
    return server


def routes_of(monitor: int) -> set[str] | None:
    """Names of the servers that one has routes to; None while it does not respond."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{monitor}/routez", timeout=2) as response:
            routes: list[dict[str, str]] = json.load(response).get("routes") or []
            return {route["remote_name"] for route in routes}
    except OSError:
        return None


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    (tmp_path / "identity").mkdir()
    admission = RouteAdmission("route", "of-the-routes", route_tls(tmp_path / "identity"))
    routes = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    with ExitStack() as stack:
        servers = [
            start(stack, tmp_path / f"nats-{number}", own, routes, admission) for number, own in enumerate(routes, 1)
        ]
        yield Cluster(routes, [server.port for server in servers], admission, stack, servers)


def certificate_of_a_gardenlet(directory: Path) -> str:
    """TLS by a certificate of an authority that issues them to clients."""
    authority = new_authority("gardenbus", datetime.now(UTC))
    own = Authority(authority).client(Principal("gardenlet", "wild"), datetime.now(UTC))
    files = [directory / f"wild.{end}" for end in ("crt", "key", "ca")]
    for file, content in zip(files, (own.certificate, own.key, authority.certificate), strict=True):
        file.write_bytes(content)
    return tls_configuration(files[0], files[1], peers=directory / "identity" / "routes.ca.crt")


async def test_only_who_has_the_password_and_a_certificate_of_the_routes_is_let_into_the_cluster(
    cluster: Cluster, tmp_path: Path
) -> None:
    async def together() -> None:
        assert [routes_of(monitor) for monitor in cluster.monitors] == [{"nats-2"}, {"nats-1"}]

    await eventually(together)
    strangers = {
        "nobody": RouteAdmission("route", "a-guess"),
        "without-tls": cluster.admission._replace(tls=""),
        "by-a-guess": cluster.admission._replace(password="a-guess"),
        "by-another-certificate": cluster.admission._replace(tls=certificate_of_a_gardenlet(tmp_path)),
    }
    outside = [
        start(cluster.stack, tmp_path / name, f"127.0.0.1:{free_port()}", cluster.routes, admission).port
        for name, admission in strangers.items()
    ]
    listen = f"127.0.0.1:{free_port()}"
    friend = start(cluster.stack, tmp_path / "friend", listen, cluster.routes, cluster.admission).port

    async def let_in() -> None:
        assert routes_of(friend) == {"nats-1", "nats-2"}

    await eventually(let_in)
    for name, monitor in zip(strangers, outside, strict=True):
        log = tmp_path / name / "server.log"

        async def tried(log: Path = log) -> None:
            text = await asyncio.to_thread(log.read_text)
            assert "closed" in text or "handshake error" in text, text

        await eventually(tried)
        assert routes_of(monitor) == set(), name
    assert [routes_of(monitor) for monitor in cluster.monitors] == [{"nats-2", "friend"}, {"nats-1", "friend"}]


async def test_the_certificate_of_the_routes_is_replaced_while_the_servers_run(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Both authorities are trusted first, then comes the certificate, then the old authority goes."""
    place = tmp_path / "identity"
    old, new = (place / AUTHORITY).read_bytes(), new_route_certificate(("127.0.0.1",), datetime.now(UTC))

    async def together() -> None:
        assert [routes_of(monitor) for monitor in cluster.monitors] == [{"nats-2"}, {"nats-1"}]

    await eventually(together)
    steps = (
        {AUTHORITY: old + new[AUTHORITY]},
        {KEY: new[KEY], CERTIFICATE: new[CERTIFICATE]},
        {AUTHORITY: new[AUTHORITY]},
    )
    for files in steps:
        for name, content in files.items():
            (place / name).write_bytes(content)
        for server in cluster.servers:
            before = reloads_of(server)
            assert server.process is not None
            os.kill(server.process.pid, signal.SIGHUP)

            async def reloaded(server: Server = server, before: int = before) -> None:
                assert reloads_of(server) > before, (server.directory / "server.log").read_text()

            await eventually(reloaded)
            await eventually(together)

    listen = f"127.0.0.1:{free_port()}"
    friend = start(cluster.stack, tmp_path / "friend", listen, cluster.routes, cluster.admission).port

    async def let_in() -> None:
        assert routes_of(friend) == {"nats-1", "nats-2"}

    await eventually(let_in)


def reloads_of(server: Server) -> int:
    """How often a server has read its configuration anew."""
    return (server.directory / "server.log").read_text().count("Reloaded server configuration")
