"""The fuzzer of the command line: damaged files, read by every command that reads files, in this process.

A command ends with one of the documented exit codes, and never with a traceback. What is applied goes to the handlers
of a real apiserver on a store in memory, and is then shown.
"""

import asyncio
import json
import os
import random
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO
from unittest import mock

import yaml
from typer.testing import CliRunner

from gardenbus.cli.commands import options
from gardenbus.cli.main import app
from gardenbus.common.api.document import Document
from tests.fuzz.corpus import Template, manifests_of_project, template_of, templates
from tests.fuzz.findings import Finding, Findings, resident_bytes
from tests.fuzz.mutations import anything, as_yaml, damaged, encoded, mutated
from tests.fuzz.process import sendable, stored_world
from tests.fuzz.world import World
from tests.support.memory_api import MemoryApi

EXIT_CODES = frozenset({0, 1, 2, 3, 130})
"""Those of `gardenbus --help`."""

SLOWEST_SECONDS = 10.0
FILES_A_STORE = 50
REPORTED = 500
SAMPLE = 300

LOG_LINE: Document = {
    "event": "shoot.scheduled",
    "level": "info",
    "timestamp": "2026-01-02T03:04:05.000000Z",
    "service": "scheduler",
    "shoot": "shoot garden-dev/apollo",
    "trace_id": "abc123",
    "duration_ms": 1.5,
    "exception": "Traceback:\n  ValueError",
}
LANDSCAPE: Document = {
    "nats_url": "nats://127.0.0.1:4222",
    "redis_url": "redis://127.0.0.1:6379",
    "prefix": "garden",
    "services": [{"name": "apiserver", "pid": None, "health_url": None, "restarts": 0}],
    "state": "ready",
    "ports": {"nats": 4222},
}
CONTEXTS: Document = {
    "current-context": "dev",
    "contexts": {"dev": {"nats-url": "nats://127.0.0.1:4222", "prefix": "garden"}, "dir": {"dir": "/tmp/x"}},
}

Words = Sequence[str]

WITH_MANIFESTS: Sequence[Words] = (
    ("apply", "-f", "FILE", "--dry-run=server", "-o", "yaml"),
    ("apply", "-f", "FILE"),
    ("apply", "-f", "FILE", "--validate=warn", "-n", "garden-dev"),
    ("create", "-f", "FILE"),
    ("replace", "-f", "FILE"),
    ("diff", "-f", "FILE"),
    ("delete", "-f", "FILE", "--confirm"),
    ("get", "-f", "FILE"),
    ("simulate", "FILE"),
    ("simulate", "FILE", "-o", "json"),
    ("patch", "shoot", "apollo", "-n", "garden-dev", "--patch-file", "FILE"),
)
AFTERWARDS: Sequence[Words] = (
    ("get", "shoots", "-A", "-o", "wide"),
    ("get", "seeds", "-o", "yaml"),
    ("get", "crp"),
    ("get", "managedseedsets,seedautoscalers", "-A"),
    ("describe", "shoot", "apollo", "-n", "garden-dev"),
    ("describe", "seed", "aws-eu1"),
    ("describe", "crp", "forecast"),
    ("explain", "shoot", "apollo", "-n", "garden-dev"),
    ("explain", "placement", "forecast"),
    ("queue",),
    ("api-resources",),
)
WITH_LOGS: Sequence[Words] = (
    ("logs", "--dir", "DIR"),
    ("logs", "--dir", "DIR", "--shoot", "garden-dev/apollo", "-o", "json"),
    ("logs", "--dir", "DIR", "--level", "warning", "--since", "1d", "--tail", "3"),
)
WITH_LANDSCAPE: Sequence[Words] = (
    ("get", "seeds", "--dir", "DIR"),
    ("rejected", "--dir", "DIR"),
    ("logs", "--dir", "DIR"),
)
WITH_CONTEXTS: Sequence[Words] = (
    ("config", "get-contexts"),
    ("config", "view"),
    ("get", "seeds"),
    ("config", "use-context", "dir"),
)


class CommandLine:
    """A directory with one damaged file after the other, and the commands that read it."""

    def __init__(self, directory: Path, seed: int) -> None:
        self._directory = directory
        self._seed = seed
        self._chance = random.Random()
        self._runner = CliRunner()
        self._world, _ = stored_world()
        configurations = [
            template_of(each) for each in manifests_of_project() if "config" in str(each.get("apiVersion"))
        ]
        self._templates: Sequence[Template] = [*sendable(self._world), *templates(), *configurations]
        self._api = MemoryApi()
        (directory / "logs").mkdir()
        self.findings = Findings()

    def run(self, number: int) -> None:
        """Write the file of a number, and run a command that reads it."""
        if number % FILES_A_STORE == 0:
            self._api = asyncio.run(_api_with(self._world))
        chance = self._chance
        chance.seed((self._seed << 40) + number)
        draw = chance.random()
        if draw < 0.8:
            self._of_manifests(number, chance)
        elif draw < 0.9:
            self._of_lines(number, chance)
        else:
            self._of_json(number, chance)
        self.findings.inputs += 1

    def _of_manifests(self, number: int, chance: random.Random) -> None:
        file = self._directory / f"manifests.{chance.choice(('yaml', 'yml', 'json'))}"
        body = b"\n---\n".join(self._manifest(chance) for _ in range(chance.choice((1, 1, 1, 2, 5))))
        file.write_bytes(body)
        for words in (chance.choice(WITH_MANIFESTS), chance.choice(WITH_MANIFESTS), chance.choice(AFTERWARDS)):
            connection = () if words[0] == "simulate" else ("--nats-url", "nats://127.0.0.1:1")
            self._command([*(str(file) if word == "FILE" else word for word in words), *connection], number, body)
        file.unlink()

    def _manifest(self, chance: random.Random) -> bytes:
        template = chance.choice(self._templates)
        draw = chance.random()
        if draw < 0.1:
            return damaged(template.encoded, chance)
        document = mutated(template, chance)
        if draw < 0.3:
            return as_yaml(document, chance).encode("utf-8", "surrogatepass")
        if draw < 0.6 and (body := _in_block_style(document)) is not None:
            return damaged(body, chance) if draw < 0.4 else body
        body = encoded(document, chance)
        return damaged(body, chance) if draw < 0.7 else body

    def _of_lines(self, number: int, chance: random.Random) -> None:
        lines: list[bytes] = []
        for _ in range(chance.randrange(1, 8)):
            line = encoded({**LOG_LINE, chance.choice(list(LOG_LINE)): anything(chance)}, chance)
            lines.append(damaged(line, chance) if chance.random() < 0.3 else line)
        body = b"\n".join(lines)
        names = ("scheduler-1.log", "nats.log", "redis.log", "up.log")
        (self._directory / "logs" / chance.choice(names)).write_bytes(body)
        self._command(self._placed(chance.choice(WITH_LOGS)), number, body)

    def _of_json(self, number: int, chance: random.Random) -> None:
        """landscape.json, or the file of contexts."""
        environment: dict[str, str] = {}
        original, file, commands = LANDSCAPE, self._directory / "landscape.json", WITH_LANDSCAPE
        if chance.random() < 0.5:
            original, file, commands = CONTEXTS, self._directory / "config.yaml", WITH_CONTEXTS
            environment["GARDENBUS_CONFIG"] = str(file)
        body = encoded(mutated(template_of(original), chance), chance)
        body = damaged(body, chance) if chance.random() < 0.3 else body
        file.write_bytes(body)
        self._command(self._placed(chance.choice(commands)), number, body, environment)
        file.unlink()

    def _placed(self, words: Words) -> Words:
        return [str(self._directory) if word == "DIR" else word for word in words]

    def _command(self, words: Words, number: int, body: bytes, environment: Mapping[str, str] | None = None) -> None:
        began = time.process_time()
        with mock.patch.object(options, "connected", self._api.connected):
            result = self._runner.invoke(app, list(words), env=environment)
        took = time.process_time() - began
        findings, sample = self.findings, f"{' '.join(words)} of {body[:SAMPLE]!r}"
        findings.slowest = max(findings.slowest, (took, number))
        findings.outcomes["taken" if result.exit_code == 0 else f"exit {result.exit_code}"] += 1
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            findings.add_exception(result.exception, number, sample)
        elif result.exit_code not in EXIT_CODES:
            findings.add(Finding(f"exit {result.exit_code} of {words[0]}", result.output[-200:], number, sample))
        elif "an unexpected error" in result.output or "Traceback (most recent" in result.stderr:
            findings.add(Finding(f"an unexpected error of {words[0]}", result.output[-300:], number, sample))
        if took > SLOWEST_SECONDS:
            findings.add(Finding(f"slow {words[0]}", f"took {took:.1f} s", number, sample))


def _in_block_style(document: Document) -> bytes | None:
    """A manifest as PyYAML writes it; None where it writes none: lone surrogates, and what is nested too deeply."""
    text = json.dumps(document)
    if "\\ud" in text:
        return None
    try:
        return yaml.safe_dump(json.loads(text)).encode()
    except RecursionError:
        return None


async def _api_with(world: World) -> MemoryApi:
    api = MemoryApi()
    await api.create(map(_without_seed, world.documents.values()))
    await api.create(map(_without_seed, world.documents.values()))  # what others were needed for
    return api


def _without_seed(document: Document) -> Document:
    """A shoot that is not placed: only a bind places one."""
    if document["kind"] != "Shoot":
        return document
    spec = {name: value for name, value in document["spec"].items() if name != "seedName"}
    return {**document, "spec": spec, "status": {}}


def fuzz_command_line(directory: Path, files: int, seed: int, *, log: TextIO | None = None) -> Findings:
    """Run the command line on so many files. Works in `directory`, which becomes the working directory meanwhile."""
    command_line = CommandLine(directory, seed)
    findings = command_line.findings
    began, began_processor = time.perf_counter(), time.process_time()
    here = Path.cwd()
    os.chdir(directory)
    try:
        for number in range(files):
            command_line.run(number)
            findings.seconds = time.perf_counter() - began
            findings.processor_seconds = time.process_time() - began_processor
            if number % REPORTED == REPORTED - 1 or number == files - 1:
                findings.memory.append(resident_bytes())
                if log is not None:
                    print("\n".join((f"--- {number + 1} of {files}", *findings.lines())), file=log, flush=True)
    finally:
        os.chdir(here)
    return findings
