"""A whole landscape of real processes, started by `gardenbus up` and spoken to through NATS only."""

import asyncio
import contextlib
import json
import os
import signal
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import nats
import nats.errors
import yaml
from nats.aio.client import Client

from tests.support.commands import gardenbus_program
from tests.support.eventually import HANG_SECONDS, eventually

Document = dict[str, Any]
Connect = Callable[[], Awaitable[Client]]


class RequestRejected(AssertionError):
    """garden.api responded with an error."""


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    stdout: str
    stderr: str


PAGE_SECONDS = 20.0
"""Time after which a page is requested anew where a test waits: who is killed with a request never responds."""


class Landscape:
    """A running landscape. `client` is connected to its NATS, as the one whose subjects begin with `prefix`."""

    def __init__(
        self, directory: Path, client: Client, prefix: str = "garden", *, connect: Connect | None = None
    ) -> None:
        self.directory = directory
        self.client = client
        self.prefix = prefix
        self._connect = connect

    async def connected(self) -> Client:
        """The client, or a new one: nats-py gives up for good after an error of the server that it does not know."""
        if self.client.is_closed and self._connect is not None:
            self.client = await self._connect()
        return self.client

    def describe(self) -> Document:
        """What landscape.json says now."""
        return json.loads((self.directory / "landscape.json").read_text())

    def pids(self, name: str) -> list[int]:
        """Process ids of a service (all its replicas)."""
        return [s["pid"] for s in self.describe()["services"] if s["pid"] and s["name"].split("-")[0] == name]

    def kill(self, name: str) -> None:
        """SIGKILL every process of a service; `gardenbus up` starts them again."""
        self._kill(self.pids(name))

    def kill_process(self, name: str) -> None:
        """SIGKILL the process of this very name, as `nats-2`; it is started again, too."""
        self._kill([s["pid"] for s in self.describe()["services"] if s["pid"] and s["name"] == name])

    def _kill(self, pids: Sequence[int]) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    async def query(self, tail: str, body: object = None, *, timeout: float = HANG_SECONDS) -> Any:
        """Send a request to garden.api and return its result. Raises RequestRejected with the error."""
        payload = b"" if body is None else json.dumps(body).encode()
        client = await self.connected()
        message = await client.request(f"{self.prefix}.api.{tail}", payload, timeout=timeout)
        response = json.loads(message.data)
        if not response["ok"]:
            raise RequestRejected(response["error"]["message"], response["error"])
        return response["result"]

    async def list(self, kind: str) -> list[Document]:
        """All objects of a kind. Raises errors of nats-py when a page does not come: its apiserver may be killed."""
        items: list[Document] = []
        token: str | None = None
        while True:
            body = {"limit": 500} | ({"continue": token} if token else {})
            page = await self.query(f"list.{kind}", body, timeout=PAGE_SECONDS)
            items += page["items"]
            token = page.get("continue")
            if not token:
                return items

    async def responds(self) -> None:
        """Wait until an apiserver responds, also while what was killed is still coming back."""

        async def listed() -> None:
            try:
                await self.query("list.seed", {"limit": 1}, timeout=PAGE_SECONDS)
            except (nats.errors.Error, OSError, TimeoutError, RequestRejected) as error:
                raise AssertionError(repr(error)) from error

        await eventually(listed, every=0.5)

    async def begin(self, *arguments: str) -> asyncio.subprocess.Process:
        """Start a `gardenbus` command on this landscape."""
        return await asyncio.create_subprocess_exec(
            str(gardenbus_program()),
            *arguments,
            *("--dir", str(self.directory)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def command(self, *arguments: str, within: float = HANG_SECONDS) -> Ended:
        """Run a `gardenbus` command on this landscape to its end."""
        return await ended(await self.begin(*arguments), within=within)

    async def publish(self, subject: str, documents: Sequence[Document]) -> None:
        """Publish manifests durably and wait for JetStream's acknowledgement, through outages."""
        body = yaml.safe_dump_all(documents).encode()

        async def accepted() -> None:
            try:
                client = await self.connected()
                response = await client.request(subject, body, timeout=5)
            except (nats.errors.Error, OSError) as error:
                raise AssertionError(str(error)) from error
            assert "seq" in json.loads(response.data), response.data

        await eventually(accepted, every=0.5)


async def ended(process: asyncio.subprocess.Process, *, within: float = HANG_SECONDS) -> Ended:
    """Wait for the end of a command."""
    stdout, stderr = await asyncio.wait_for(process.communicate(), within)
    assert process.returncode is not None
    return Ended(process.returncode, stdout.decode(), stderr.decode())


def address_of(directory: Path) -> str:
    """Address of a landscape's NATS, with the operator's user and password where it asks for them."""
    described = json.loads((directory / "landscape.json").read_text())
    url: str = described["nats_url"]
    login = f"{described['nats_user']}:{described['nats_password']}@" if described.get("nats_user") else ""
    return url.replace("nats://", f"nats://{login}")


def authorities_of(directory: Path) -> str:
    """File of the authorities of a landscape's NATS; "" where it has no TLS."""
    return json.loads((directory / "landscape.json").read_text()).get("ca", "")


def trust_of(directory: Path) -> ssl.SSLContext | None:
    """The same for a client of its own."""
    ca = authorities_of(directory)
    return ssl.create_default_context(cafile=ca) if ca else None


def violations(directory: Path) -> list[str]:
    """What NATS refused services and the operator."""
    lines = [line for log in (directory / "logs").glob("nats*.log") for line in log.read_text().splitlines()]
    return [line for line in lines if "Violation" in line and '"GARDEN/' in line]


@contextlib.asynccontextmanager
async def attached(directory: Path) -> AsyncGenerator[Landscape]:
    """A landscape that runs already (`gardenbus up --detach`), and responds."""
    async with attached_to(address_of(directory), directory, trust_of(directory)) as landscape:
        yield landscape


@contextlib.asynccontextmanager
async def attached_to(
    url: str, directory: Path = Path(), trust: ssl.SSLContext | None = None
) -> AsyncGenerator[Landscape]:
    """The landscape on a NATS server, once it responds; `directory` where it has one."""

    async def connect() -> Client:
        return await nats.connect(  # pyright: ignore[reportUnknownMemberType]
            url.split(","), max_reconnect_attempts=-1, reconnect_time_wait=0.2, connect_timeout=5, tls=trust
        )

    landscape = Landscape(directory, await connect(), connect=connect)
    try:

        async def responding() -> None:
            try:
                await landscape.query("census", timeout=2)
            except (nats.errors.Error, OSError) as error:
                raise AssertionError(str(error)) from error

        await eventually(responding)
        yield landscape
    finally:
        await landscape.client.close()


@contextlib.asynccontextmanager
async def a_landscape(
    directory: Path, *arguments: str, ready_within: float = HANG_SECONDS
) -> AsyncGenerator[Landscape]:
    """Start `gardenbus up` in a directory, with `-f` until it has applied the files, and stop it in the end."""
    log = (directory.parent / f"{directory.name}-up.log").open("wb")
    process = await asyncio.create_subprocess_exec(
        str(gardenbus_program()),
        "up",
        "--dir",
        str(directory),
        *arguments,
        stdout=log,
        stderr=log,
        stdin=asyncio.subprocess.DEVNULL,
    )
    try:

        async def described() -> None:
            assert process.returncode is None, f"gardenbus up ended with {process.returncode}: see {log.name}"
            assert (directory / "landscape.json").exists()
            assert json.loads((directory / "landscape.json").read_text())["supervisor_pid"] == process.pid

        async def applied() -> None:
            reported = Path(log.name).read_text(errors="replace")
            assert "manifests: " in reported or "settled" in reported, f"nothing is applied yet: see {log.name}"

        await eventually(described)
        async with attached(directory) as landscape:
            if "-f" in arguments:
                await eventually(applied)
            yield landscape
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(process.wait(), HANG_SECONDS)
            except TimeoutError:
                process.kill()
                await process.wait()
        log.close()
