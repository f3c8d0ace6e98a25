"""The fuzzer over the wire: a whole landscape of real processes gets messages for all its subjects.

Every request is answered, and never with an unexpected error; no process ends; what can be worked off is worked off;
and memory stays.
"""

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO, cast

import msgspec
import yaml

from gardenbus.common.api.document import Document
from tests.fuzz.clearing import Clearing
from tests.fuzz.findings import MEGABYTE, MOST_GROWTH, Finding, Findings, growth, resident_bytes
from tests.fuzz.messages import Sent, messages_of
from tests.fuzz.process import sendable, stored_world
from tests.fuzz.raw_client import NO_RESPONDERS, RawClient
from tests.support.builders import a_cloudprofile, a_gardenlet_configuration, a_project
from tests.support.landscape import Landscape, a_landscape
from tests.support.wire_checks import AGENT, processes, unfinished

WINDOW = 64
"""Requests that wait for their responses at a time."""

SLOWEST_SECONDS = 60.0
STUCK_SECONDS = 120.0
"""Without any fewer messages in the work queues for so long, none of them will be worked off."""

PROGRESS_SECONDS = 60.0
MOST_QUEUED = 20_000
"""Messages of work queues that wait before the sender does."""

MEASURED = 2_000
"""Messages between two looks at memory and queues."""

CLEARED = 10_000
"""Messages between two looks at what they have created."""

MOST_CREATED = 500
"""Objects that stay: with all that are ever created memory would grow for a good reason."""

LARGEST_BYTES = 1024 * MEGABYTE
"""Memory above which a process is a finding: `MOST_CREATED` objects are no reason for it."""

REPORTED = 20_000
SAMPLE = 400


class Left(NamedTuple):
    """What is left in work queues: messages of requests and reports, and subjects of all that is served."""

    messages: int
    subjects: int
    sample: tuple[str, ...] = ()


class WireFuzzer:
    """Sends messages to a landscape, and looks at its responses and processes."""

    def __init__(self, landscape: Landscape, seed: int) -> None:
        world, _ = stored_world()
        sent = sendable(world)
        reported = [each for each in stored_world()[1] if each.document.get("status")]
        self._messages = messages_of([*sent, *reported], seed)
        self._landscape = landscape
        self._waiting: dict[int, tuple[float, Sent]] = {}
        self._room = asyncio.Event()
        self.memory: dict[str, list[int]] = defaultdict(list)
        self.findings = Findings()
        self._clearing = Clearing(self._call, MOST_CREATED)

    async def run(self, count: int, *, log: TextIO | None = None) -> Findings:
        """Send so many messages. Afterwards nothing that is served waits."""
        findings = self.findings
        before = processes(self._landscape)
        url: str = self._landscape.describe()["nats_url"]
        client = await RawClient.connect(url, self._count_response)
        await self._clearing.begin()
        began = time.perf_counter()
        progress = Progress(count, log)
        for number in range(count):
            sent = self._messages.next()
            if sent.is_request:
                await self._wait_for_room()
                self._waiting[number] = (time.perf_counter(), sent)
            await client.send(sent.message, number if sent.is_request else None)
            findings.inputs += 1
            if number % MEASURED == MEASURED - 1:
                await self._measure(number)
            if number % CLEARED == CLEARED - 1:
                await self._clear(number)
            if client.is_closed:
                findings.add(Finding("connection", f"closed by the server: {client.errors[-1:]}", number, ""))
                client = await RawClient.connect(url, self._count_response)
            findings.seconds = time.perf_counter() - began
            progress.note(number + 1, self.memory)
            if log is not None and number % REPORTED == REPORTED - 1:
                print("\n".join((f"--- {number + 1} of {count}", *self.lines())), file=log, flush=True)
        await self._end(client, before, count)
        findings.seconds = time.perf_counter() - began
        return findings

    def lines(self) -> list[str]:
        """What was found, and the memory of each process at the beginning and now."""
        self.findings.memory = self._memory_of_apiserver()
        each = ", ".join(
            f"{name} {sizes[len(sizes) // 5] / MEGABYTE:.0f} → {sizes[-1] / MEGABYTE:.0f}"
            for name, sizes in sorted(self.memory.items())
            if sizes
        )
        cleared = f"{self._clearing.deleted} deleted again; otherwise: {self._clearing.outcomes}"
        return [*self.findings.lines(), cleared, f"memory in MB after a fifth and now: {each}"]

    # ------------------------------------------------------------------------------------------ steps

    async def _wait_for_room(self) -> None:
        while len(self._waiting) >= WINDOW:
            self._room.clear()
            try:
                await asyncio.wait_for(self._room.wait(), SLOWEST_SECONDS)
            except TimeoutError:
                self._give_up()

    def _give_up(self) -> None:
        """Note requests without a response."""
        now = time.perf_counter()
        for number, (at, sent) in list(self._waiting.items()):
            if now - at > SLOWEST_SECONDS:
                del self._waiting[number]
                self.findings.outcomes["unanswered"] += 1
                what = f"no response in {SLOWEST_SECONDS:.0f} s"
                self.findings.add(Finding(f"unanswered {_verb(sent)}", what, number, _sample(sent)))

    def _count_response(self, number: int, body: bytes) -> None:
        self._room.set()
        found = self._waiting.pop(number, None)
        if found is None:
            return
        at, sent = found
        took = time.perf_counter() - at
        self.findings.slowest = max(self.findings.slowest, (took, number))
        outcome, problem = _assessed(body)
        self.findings.outcomes[outcome] += 1
        if problem:
            self.findings.add(Finding(f"response to {_verb(sent)}: {problem[:60]}", problem, number, _sample(sent)))

    async def _call(self, verb: str, body: dict[str, object]) -> dict[str, Any]:
        """Make a request of the API as the operator."""
        response = await self._landscape.client.request(
            f"garden.api.{verb}", msgspec.json.encode(body), timeout=SLOWEST_SECONDS
        )
        return cast("dict[str, Any]", msgspec.json.decode(response.data))

    async def _clear(self, number: int) -> None:
        await self._clearing.clear()
        for each in self._clearing.unexpected:
            self.findings.add(Finding("deletion", each, number, ""))
        self._clearing.unexpected.clear()

    async def _measure(self, number: int) -> None:
        for service in self._landscape.describe()["services"]:
            try:
                size = resident_bytes(service["pid"])
            except (OSError, TypeError):  # it has ended; its restart is found at the end
                continue
            self.memory[service["name"]].append(size)
            if size > LARGEST_BYTES and (place := f"size of {service['name']}") not in self.findings.found:
                what = f"{size // MEGABYTE} MB, after a message sent before this number"
                self.findings.add(Finding(place, what, number, ""))
        while await self._queued() > MOST_QUEUED:
            await asyncio.sleep(0.2)

    async def _queued(self) -> int:
        """Messages that wait in the streams that the apiserver consumes."""
        total = 0
        for stream in ("REQUESTS", "REPORTS"):
            reply = await self._landscape.client.request(f"$JS.API.STREAM.INFO.{stream}", b"", timeout=60)
            total += int(json.loads(reply.data)["state"]["messages"])
        return total

    async def _end(self, client: RawClient, before: dict[str, int], count: int) -> None:
        deadline = time.perf_counter() + SLOWEST_SECONDS
        while self._waiting and time.perf_counter() < deadline:
            await asyncio.sleep(0.05)
        self._give_up()
        for error in {error for error in client.errors if b"Invalid" not in error}:
            self.findings.add(Finding("bus", repr(error), count, ""))
        await client.close()
        if stuck := await drained(self._left, stuck_seconds=STUCK_SECONDS):
            self.findings.add(Finding("queues", stuck[:300], count, ""))
        await self._measure(count)
        after = processes(self._landscape)
        for name, pid in before.items():
            if pid != after.get(name):
                self.findings.add(Finding(f"restart of {name}", f"{pid} → {after.get(name)}", count, ""))
        for name, sizes in self.memory.items():
            if (grown := growth(sizes)) > MOST_GROWTH:
                self.findings.add(
                    Finding(f"memory of {name}", f"grew by {grown // MEGABYTE} MB", count, str(sizes[-9:]))
                )
        self.findings.memory = self._memory_of_apiserver()

    def _memory_of_apiserver(self) -> list[int]:
        """That of the largest."""
        each = [sizes for name, sizes in self.memory.items() if name.startswith("apiserver") and sizes]
        return max(each, key=lambda sizes: sizes[-1]) if each else []

    async def _left(self) -> Left:
        subjects = await unfinished(self._landscape)
        return Left(await self._queued() if subjects else 0, len(subjects), tuple(subjects[:3]))


async def drained(probe: Callable[[], Awaitable[Left]], *, stuck_seconds: float, every: float = 0.5) -> str:
    """Wait while fewer and fewer messages are left; return which are, where they become no fewer, and "" at the end."""
    fewest = await probe()
    fewer_at = time.monotonic()
    while fewest.subjects:
        await asyncio.sleep(every)
        left = await probe()
        if left[:2] < fewest[:2]:
            fewest, fewer_at = left, time.monotonic()
        elif time.monotonic() - fewer_at > stuck_seconds:
            return f"{left.messages} messages on {left.subjects} subjects stay, as {', '.join(left.sample)}"
    return ""


class Progress:
    """Prints a line a minute: what has been sent, how fast, and what each process takes."""

    def __init__(self, count: int, log: TextIO | None, *, every: float = PROGRESS_SECONDS) -> None:
        self._count = count
        self._log = log
        self._every = every
        self._last = (0, time.monotonic())

    def note(self, sent: int, memory: Mapping[str, Sequence[int]]) -> None:
        """So many have been sent by now."""
        before, at = self._last
        seconds = time.monotonic() - at
        if self._log is None or seconds < self._every:
            return
        self._last = (sent, time.monotonic())
        each = ", ".join(f"{name} {sizes[-1] / MEGABYTE:.0f}" for name, sizes in sorted(memory.items()) if sizes)
        rate = (sent - before) / seconds
        print(
            f"{sent:,} of {self._count:,} sent, {rate:.0f} a second; memory in MB: {each}", file=self._log, flush=True
        )


def _assessed(body: bytes) -> tuple[str, str]:
    """The outcome of a response, and what is wrong with it."""
    if body == NO_RESPONDERS:
        return "no responders", "nobody serves the subject"
    try:
        response: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        return "unreadable", f"the response is no JSON: {error}"
    if not isinstance(response, dict) or "ok" not in response:
        return "unreadable", "the response is none of the API's"
    responded = cast("Document", response)
    if responded["ok"]:
        return "taken", ""
    problem: Document = responded["error"]
    is_unexpected = problem["code"] == 500 or "unexpected error" in problem["message"]
    return f"{problem['code']} {problem['reason']}", problem["message"][:200] if is_unexpected else ""


def _verb(sent: Sent) -> str:
    tail = sent.message.subject.decode("utf-8", "replace").partition("api.")[2]
    return tail.partition(".")[0][:20]


def _sample(sent: Sent) -> str:
    return repr(tuple(sent.message))[:SAMPLE]


async def fuzz_wire(
    directory: Path, messages: int, seed: int, *, apiservers: int = 1, log: TextIO | None = None
) -> Findings:
    """Start a landscape, and send it so many messages."""
    file = directory / "landscape.yaml"
    file.write_text(yaml.safe_dump_all([a_gardenlet_configuration(), a_project(), a_cloudprofile(), dict(AGENT)]))
    replicas = ("--replicas", f"apiserver={apiservers}")
    arguments = ("--insecure", *replicas, "-f", str(file))
    async with a_landscape(directory / "state", *arguments, ready_within=300) as landscape:
        fuzzer = WireFuzzer(landscape, seed)
        findings = await fuzzer.run(messages, log=log)
        if log is not None:
            print(fuzzer.lines()[-1], file=log, flush=True)
        return findings
