"""Where control planes run, by what the local backends of a landscape keep; and gardenlets that a test starts."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import yaml

from gardenbus.agent.certificate_manager import write_token
from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.credentials import read_credentials
from gardenbus.common.adapters.nats.messages import encode_headers, publish_command
from tests.support.landscape import Document, Landscape

LASTING = ("ca", "network", "zone", "volume", "pool")
"""What a step makes that must be the same wherever the control plane runs."""

_SAMPLE_SECONDS = 0.02


class ControlPlanes:
    """Reads the files below the state directory of the gardenlets. Shoots are `<namespace>/<name>`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.at_once: list[str] = []
        """What was seen of shoots whose control plane ran on several seeds at the same moment."""

    @classmethod
    def of(cls, landscape: Landscape) -> "ControlPlanes":
        """Those of a landscape."""
        return cls(landscape.directory / "gardenlets")

    def files(self) -> dict[str, set[str]]:
        """By shoot: the seeds on which anything is kept of it."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for file in self._directory.glob("*/shoots/*/[!.]*.json"):
            found[f"{file.parent.name}/{file.stem}"].add(file.parents[2].name)
        return dict(found)

    def record(self, seed: str, shoot: str) -> Document:
        """What a seed keeps of a shoot; empty when that is nothing."""
        try:
            return json.loads((self._directory / seed / "shoots" / f"{shoot}.json").read_bytes())
        except FileNotFoundError:
            return {}

    def runs(self, seed: str, shoot: str) -> Document:
        """The control plane of a shoot on a seed; empty when there is none."""
        return self.record(seed, shoot).get("resources", {}).get("control-plane", {})

    def identities(self, seed: str, shoot: str) -> dict[str, str]:
        """What must not change when the control plane moves."""
        made: dict[str, dict[str, Any]] = self.record(seed, shoot).get("resources", {})
        return {f"{step}.{name}": fields[name] for step, fields in made.items() for name in LASTING if name in fields}

    def sample(self) -> None:
        """Note every shoot that has two control planes now.

        Files are read one after the other: only what is the same after the others were read was there all the time.
        """
        for shoot, seeds in self.files().items():
            running = {seed: plane for seed in sorted(seeds) if (plane := self.runs(seed, shoot))}
            still = [seed for seed, plane in running.items() if self.runs(seed, shoot) == plane]
            if len(still) > 1:
                self.at_once.append(f"{shoot} on {', '.join(still)}")

    @contextlib.asynccontextmanager
    async def watched(self) -> AsyncGenerator[None]:
        """Look again and again for as long as the block lasts."""

        async def watch() -> None:
            while True:
                self.sample()
                await asyncio.sleep(_SAMPLE_SECONDS)

        watching = asyncio.create_task(watch())
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            self.sample()


class GardenletProcesses:
    """Gardenlets that a test starts beside a landscape, on the state directory that `gardenbus up` would give them."""

    def __init__(self, landscape: Landscape, logs: Path) -> None:
        self._landscape = landscape
        self._logs = logs
        self._running: dict[str, asyncio.subprocess.Process] = {}

    async def start(self, name: str, *configurations: Document) -> None:
        """Start the process `name`; the same configurations again after a kill go on where it was."""
        for each in configurations:
            await self._admit(each["seedConfig"]["metadata"]["name"])
        file = self._logs / f"{name}.yaml"
        file.write_text(yaml.safe_dump_all(configurations))
        where = self._landscape.describe()
        with (self._logs / f"{name}.log").open("ab") as log:
            self._running[name] = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "gardenbus.gardenlet", "--config", str(file)),
                *("--state-dir", str(self._landscape.directory / "gardenlets")),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={
                    **os.environ,
                    "GARDENBUS_NATS_URL": where["nats_url"],
                    "GARDENBUS_PREFIX": where["prefix"],
                    "GARDENBUS_NATS_CA": where["ca"],
                },
            )

    async def _admit(self, seed: str) -> None:
        """Have a bootstrap token lie ready for a seed that has no certificate."""
        if not self._credentials(seed).exists():
            made = await self._landscape.query("token.create", {"seed": seed})
            write_token(self._credentials(seed).parent, made["token"])

    def _credentials(self, seed: str) -> Path:
        return self._landscape.directory / "gardenlets" / seed / "credentials.pem"

    async def publish(self, subject: str, body: bytes, headers: Mapping[str, str]) -> None:
        """Say something as the gardenlet of the seed that the subject names."""
        where = self._landscape.describe()
        credentials, url = (
            read_credentials(self._credentials(subject.split(".")[2]), "", where["ca"]),
            where["nats_url"],
        )
        connection = Connection()
        await connection.open(url, "gardenlet", credentials=credentials, on_reconnect=lambda: None)
        await connection.send([publish_command(subject, body, encode_headers(headers))])
        await connection.flush_fully()
        await connection.close()

    async def kill(self, name: str) -> None:
        """SIGKILL one, also when it is paused."""
        process = self._running.pop(name)
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()

    def pause(self, name: str) -> None:
        """Stop its hands: it goes on with `resume` where it was, and knows nothing of the time between."""
        self._running[name].send_signal(signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """Let it go on."""
        self._running[name].send_signal(signal.SIGCONT)

    async def kill_all(self) -> None:
        """SIGKILL all that still run."""
        for name in tuple(self._running):
            await self.kill(name)
