"""The fuzzer with credentials: each sort of them attacks a landscape, while a quiet tenant works beside them.

No request of the quiet tenant is lost, nothing that it stored is gone or another's, no process ends, none takes more
memory than the compose file gives it, and nobody is shown as the author of what another has sent.
"""

import asyncio
import contextlib
import json
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any, TextIO

import nats
import nats.errors
import yaml
from nats.aio.client import Client

from gardenbus.common.adapters.nats.credentials import read_credentials
from gardenbus.common.api.identity.principals import Principal
from tests.fuzz.attackers import ATTACKERS, Attack, Login, in_own_process
from tests.fuzz.findings import MEGABYTE, Finding, Findings, resident_bytes
from tests.support.builders import a_cloudprofile, a_gardenlet_configuration, a_project
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.landscape import Landscape, a_landscape, trust_of
from tests.support.wire_checks import processes

QUIET = "quiet"
MEMORY = {"apiserver": 384, "nats": 1024, "redis": 2048, "identity": 384}
"""What the compose file gives a process, in MB."""

CONNECTIONS = 50
REST_SECONDS = 15.0
ATTACKERS_START_SECONDS = 5.0
FIRST_SECONDS = 10.0
"""An attack before the one that is measured: each sort of message has things loaded and compiled at its first."""
SAMPLED_SECONDS = 0.5
SLOWEST_FACTOR, SLOWEST_SECONDS = 5.0, 0.25
"""The quiet tenant's p99 beside attackers: so many times its own at rest, or so much, whichever is more."""

MOST_KEPT, STORED_BYTES = 1.1, 4 * MEGABYTE
"""Memory of a process after the attack, beside what it had before, and room for what the quiet tenant has stored."""
FREED_SECONDS = 200.0
"""Bound of the wait for memory that is given back: of itself Go collects every two minutes, on a busy machine later."""


STORED_OBJECTS = 1000
"""ConfigMaps of the quiet tenant, which are changed in turn: a Project's quota has room for ten times as many."""


class QuietTenant:
    """A tenant that stores and changes one ConfigMap after the other, durably and by requests, and reads each."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.seconds: list[float] = []
        self.acknowledged: list[str] = []
        self.lost: list[str] = []

    async def work(self, until: float) -> None:
        """Work to an instant of the clock."""
        while time.monotonic() < until:
            number = len(self.acknowledged) + len(self.lost)
            name = f"q{number % STORED_OBJECTS}"
            began = time.monotonic()
            subject = f"garden.as.{QUIET}." + ("apply" if len(self.seconds) % 2 else "api.apply")
            try:
                response = json.loads((await self._request(subject, a_config_map(name, number))).data)
            except (nats.errors.Error, TimeoutError) as error:
                self.lost.append(f"{name}: {type(error).__name__}")
                continue
            self.seconds.append(time.monotonic() - began)
            is_stored = "seq" in response or response.get("ok") is True
            (self.acknowledged if is_stored else self.lost).append(name if is_stored else f"{name}: {response}"[:300])
            await asyncio.sleep(0.02)

    async def missing(self) -> list[str]:
        """Names of what was acknowledged and is not there, or is another's."""
        found: list[str] = []
        for name in dict.fromkeys(self.acknowledged):
            response = json.loads(
                (await self._request(f"garden.as.{QUIET}.api.get.configmap.garden-quiet.{name}")).data
            )
            annotations = response.get("result", {}).get("metadata", {}).get("annotations", {})
            if annotations.get("gardener.cloud/created-by") != QUIET:
                found.append(f"{name}: {response}"[:300])
        return found

    async def _request(self, subject: str, document: object = None) -> Any:
        body = b"" if document is None else json.dumps(document).encode()
        return await self._client.request(subject, body, timeout=HANG_SECONDS / 4)


def a_config_map(name: str, number: int = 0) -> dict[str, object]:
    """What the quiet tenant stores."""
    metadata = {"name": name, "namespace": "garden-quiet"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"number": str(number)}}


def p99(seconds: Sequence[float]) -> float:
    """The 99th percentile; 0 of none."""
    return sorted(seconds)[int(len(seconds) * 0.99)] if seconds else 0.0


async def _issued(landscape: Landscape, principal: Principal, directory: Path) -> Login:
    option = {"user": "--user", "gardenlet": "--seed", "member-agent": "--member"}.get(principal.role)
    file = directory / f"{principal.token}.json"
    words = (option or f"--{principal.role}", principal.name, "-o", str(file))
    ended = await landscape.command("identity", "issue", *words)
    assert ended.code == 0, ended
    return Login(*(json.loads(file.read_text())[name] for name in ("user", "password")))


@contextlib.asynccontextmanager
async def _quiet_tenant(landscape: Landscape, directory: Path) -> AsyncGenerator[QuietTenant]:
    issued = await _issued(landscape, Principal("user", QUIET), directory)
    inbox = read_credentials(directory / f"{QUIET}.json", QUIET).inbox
    client = await nats.connect(  # pyright: ignore[reportUnknownMemberType]
        landscape.describe()["nats_url"],
        user=issued.user,
        password=issued.password,
        inbox_prefix=inbox.encode(),
        max_reconnect_attempts=-1,
        tls=trust_of(landscape.directory),
    )
    try:
        yield QuietTenant(client)
    finally:
        await client.close()


class RoleFuzzer:
    """Attacks a landscape with all sorts of credentials, and looks at what becomes of it."""

    def __init__(self, landscape: Landscape, directory: Path, seed: int) -> None:
        self._landscape = landscape
        self._directory = directory
        self._seed = seed
        self.findings = Findings()
        self.memory: dict[str, list[int]] = defaultdict(list)
        self.memory_before: dict[str, int] = {}
        self.memory_after: dict[str, int] = {}
        self.p99_at_rest = self.p99_attacked = 0.0

    async def run(self, seconds: float, *, connections: int = CONNECTIONS, log: TextIO | None = None) -> Findings:
        """Attack for so many seconds."""
        before = processes(self._landscape)
        async with _quiet_tenant(self._landscape, self._directory) as tenant:
            await tenant.work(time.monotonic() + REST_SECONDS)
            self.p99_at_rest = p99(tenant.seconds)
            tenant.seconds.clear()
            logins = {each.user: await _issued(self._landscape, each, self._directory) for each in ATTACKERS}
            url = self._landscape.describe()["nats_url"]

            async def attacked(seconds: float, seed: int) -> int:
                end = time.monotonic() + ATTACKERS_START_SECONDS + seconds
                attack = Attack(url, self._landscape.directory, logins, connections, seed, end)
                sent, *_ = await asyncio.gather(in_own_process(attack), tenant.work(end), self._sample(end))
                return sent

            await attacked(FIRST_SECONDS, self._seed - 1)
            await asyncio.sleep(REST_SECONDS)
            self.memory_before = self._resident()
            self.findings.inputs = await attacked(seconds, self._seed)
            self.p99_attacked = p99(tenant.seconds)
            self._report(tenant, before, seconds)
            try:
                await eventually(lambda: self._nothing_is_missing(tenant), every=1.0)
            except AssertionError as error:
                self.findings.add(
                    Finding("what the quiet tenant has stored", str(error)[:500], self.findings.inputs, "")
                )
            with contextlib.suppress(AssertionError):
                await eventually(self._nothing_is_kept, within=FREED_SECONDS, every=REST_SECONDS)
            self._report_memory()
        await self._forged()
        if log is not None:
            print("\n".join(self.lines()), file=log, flush=True)
        return self.findings

    def lines(self) -> list[str]:
        """What was found, the quiet tenant's latency, and the most memory of each process."""
        each = ", ".join(
            f"{name} {self.memory_before.get(name, 0) // MEGABYTE} → {max(sizes) // MEGABYTE} → "
            f"{self.memory_after.get(name, 0) // MEGABYTE}"
            for name, sizes in sorted(self.memory.items())
        )
        latency = f"the quiet tenant's p99: {self.p99_at_rest * 1000:.0f} ms at rest, {self.p99_attacked * 1000:.0f} ms"
        return [*self.findings.lines(), latency, f"memory in MB before, at most, after: {each}"]

    @property
    def is_slow(self) -> bool:
        """True when attackers have held up the quiet tenant."""
        return self.p99_attacked > max(SLOWEST_FACTOR * self.p99_at_rest, SLOWEST_SECONDS)

    async def _sample(self, until: float) -> None:
        while time.monotonic() < until:
            for name, size in self._resident().items():
                self.memory[name].append(size)
            await asyncio.sleep(SAMPLED_SECONDS)

    def _resident(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for service in self._landscape.describe()["services"]:
            with contextlib.suppress(OSError, TypeError):
                found[service["name"]] = resident_bytes(service["pid"])
        return found

    def _report(self, tenant: QuietTenant, before: dict[str, int], seconds: float) -> None:
        add, count = self.findings.add, self.findings.inputs
        for lost in tenant.lost:
            add(Finding("the quiet tenant's requests", lost, count, ""))
        if not tenant.acknowledged or count < seconds:
            add(Finding("nothing happened", f"{len(tenant.acknowledged)} stored, {count} attacks", count, ""))
        after = processes(self._landscape)
        for name, pid in before.items():
            if pid != after.get(name):
                add(Finding(f"restart of {name}", f"{pid} → {after.get(name)}", count, ""))
        for name, sizes in self.memory.items():
            limit = MEMORY.get(name.split("-")[0])
            if limit is not None and max(sizes) > limit * MEGABYTE:
                what = f"{max(sizes) // MEGABYTE} MB, of {limit} that the compose file gives it"
                add(Finding(f"memory of {name}", what, count, ""))

    async def _nothing_is_kept(self) -> None:
        self.memory_after = self._resident()
        assert self._kept() == []

    def _kept(self) -> list[str]:
        """Processes with more memory after the attack than before."""
        return [
            name
            for name, size in self.memory_after.items()
            if name.split("-")[0] in MEMORY and size > MOST_KEPT * self.memory_before.get(name, size) + STORED_BYTES
        ]

    def _report_memory(self) -> None:
        for name in self._kept():
            what = f"{self.memory_before[name] // MEGABYTE} MB before, {self.memory_after[name] // MEGABYTE} after"
            self.findings.add(Finding(f"memory that {name} keeps", what, self.findings.inputs, ""))

    async def _nothing_is_missing(self, tenant: QuietTenant) -> None:
        try:
            assert await tenant.missing() == []
        except (nats.errors.Error, TimeoutError) as error:
            raise AssertionError(f"no apiserver responds: {error!r}") from error

    async def _forged(self) -> None:
        """Look for an object that only an operator could have written."""
        names = [each["metadata"]["name"] for each in await self._landscape.list("configmap.garden")]
        if "forged" in names:
            self.findings.add(Finding("author", "a ConfigMap in garden was written by an outsider", 0, str(names)))


def standard() -> list[dict[str, Any]]:
    """A seed, and two Projects: the quiet tenant's, and one of which an attacker is a member."""
    documents: list[dict[str, Any]] = [a_gardenlet_configuration(), a_cloudprofile(), a_project("garden", "garden")]
    for name, user in ((QUIET, QUIET), ("dev", "ann")):
        member = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user, "role": "admin"}
        project = a_project(name, f"garden-{name}", spec={"members": [member]})
        del project["status"]
        documents.append(project)
    return documents


@contextlib.asynccontextmanager
async def a_role_fuzzer(directory: Path, seed: int) -> AsyncGenerator[RoleFuzzer]:
    """Start a landscape with identities, for the fuzzer."""
    file = directory / "landscape.yaml"
    file.write_text(yaml.safe_dump_all(standard()))
    async with a_landscape(directory / "state", "-f", str(file), ready_within=300) as landscape:
        yield RoleFuzzer(landscape, directory, seed)


async def fuzz_roles(
    directory: Path, seconds: float, seed: int, *, connections: int = CONNECTIONS, log: TextIO | None = None
) -> Findings:
    """Attack a landscape with credentials of all sorts for so long. That it is slow is a finding, too."""
    async with a_role_fuzzer(directory, seed) as fuzzer:
        findings = await fuzzer.run(seconds, connections=connections, log=log)
        if fuzzer.is_slow:
            what = f"p99 {fuzzer.p99_attacked * 1000:.0f} ms, at rest {fuzzer.p99_at_rest * 1000:.0f}"
            findings.add(Finding("the quiet tenant's p99", what, findings.inputs, ""))
        return findings
