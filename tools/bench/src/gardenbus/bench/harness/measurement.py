"""Steps common to scenarios: hold a consumer back until all is ready, let it go, watch a stream, count the cost."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from gardenbus.bench.comparison import Measurement
from gardenbus.bench.harness.retries import AnnouncedTwice, BenchFailed
from gardenbus.bench.harness.rig import Cost, Rig

SAMPLE_SECONDS = 0.005
STALL_SECONDS = 60.0
IDLE_NANOSECONDS = 3600 * 10**9


async def pause_consumer(rig: Rig, stream: str, consumer: str) -> None:
    """Pause a consumer: what it waits for stays in the stream."""
    await _pause(rig, stream, consumer, datetime.now(UTC) + timedelta(hours=1))


async def resume_consumer(rig: Rig, stream: str, consumer: str) -> None:
    """Resume a consumer."""
    await _pause(rig, stream, consumer, None)


async def _pause(rig: Rig, stream: str, consumer: str, until: datetime | None) -> None:
    body = {} if until is None else {"pause_until": until.isoformat()}
    await jetstream_request(rig, f"CONSUMER.PAUSE.{rig.subjects.stream(stream)}.{consumer}", body)


async def jetstream_request(rig: Rig, endpoint: str, body: object = None) -> dict[str, Any]:
    """Send a request to JetStream's API. Raises BenchFailed when it rejects."""
    encoded = b"" if body is None else msgspec.json.encode(body)
    response = msgspec.json.decode(await rig.bus.request(f"$JS.API.{endpoint}", encoded))
    if "error" in response:
        raise BenchFailed(f"{endpoint}: {response['error']}")
    return response


async def last_sequence(rig: Rig, stream: str) -> int:
    """The last sequence of a stream."""
    return (await rig.bus.position(rig.subjects.stream(stream))).sequence


class StreamTarget:
    """A place in a stream that is waited for: `count` messages after where it stood."""

    sample_seconds = SAMPLE_SECONDS

    def __init__(self, rig: Rig, stream: str, stood_at: int, count: int) -> None:
        self._rig = rig
        self._stream = stream
        self._stood_at = stood_at
        self._count = count
        self.moments: list[float] = []
        """Instant at which each message was seen to be there (monotonic)."""

    @classmethod
    async def ahead(cls, rig: Rig, stream: str, count: int) -> "StreamTarget":
        """`count` messages after where the stream stands now."""
        return cls(rig, stream, await last_sequence(rig, stream), count)

    async def reached(self) -> float:
        """Wait until the stream has come so far; returns the time (monotonic) at which it was seen there."""
        moved_at = time.monotonic()
        while True:
            come = await self.come()
            at = time.monotonic()
            if come > len(self.moments):
                moved_at = at
                self.moments += [at] * (min(come, self._count) - len(self.moments))
            if come >= self._count:
                return at
            self._rig.check_running()
            if at - moved_at > STALL_SECONDS:
                raise BenchFailed(f"{self._stream} stands still, {self._count - come} of {self._count} short")
            await asyncio.sleep(self.sample_seconds)

    async def come(self) -> int:
        """Number of messages that have come so far."""
        return await last_sequence(self._rig, self._stream) - self._stood_at

    async def check_not_passed(self) -> None:
        """Raise AnnouncedTwice when more came than was waited for."""
        more = await self.come() - self._count
        if more:
            raise AnnouncedTwice(f"{more} messages too many on {self._stream}")


class FilteredTarget(StreamTarget):
    """A place in a stream by how many messages of some subjects came; a consumer that nobody reads counts them.

    A consumer's info costs the server several times what a stream's does, so it is sampled less often.
    """

    sample_seconds = 5 * SAMPLE_SECONDS

    def __init__(self, rig: Rig, stream: str, consumer: str, stood_at: int, count: int) -> None:
        super().__init__(rig, stream, stood_at, count)
        self._consumer = consumer

    @classmethod
    async def from_now(cls, rig: Rig, stream: str, subject: str, count: int) -> "FilteredTarget":
        """`count` messages of a subject filter after where the stream stands now."""
        stood_at = await last_sequence(rig, stream)
        name = f"bench-{stood_at}"
        config = {
            "name": name,
            "filter_subject": subject,
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": stood_at + 1,
            "ack_policy": "none",
            "mem_storage": True,
            "inactive_threshold": IDLE_NANOSECONDS,
        }
        whole = rig.subjects.stream(stream)
        await jetstream_request(rig, f"CONSUMER.CREATE.{whole}.{name}", {"stream_name": whole, "config": config})
        return cls(rig, stream, name, stood_at, count)

    async def come(self) -> int:
        """Number of messages of these subjects that have come so far."""
        stream = self._rig.subjects.stream(self._stream)
        return int((await jetstream_request(self._rig, f"CONSUMER.INFO.{stream}.{self._consumer}"))["num_pending"])


@asynccontextmanager
async def measuring(rig: Rig, count: int) -> AsyncGenerator[Measurement]:
    """Count CPU seconds per process over a block; `seconds` and `moments` are the block's own to set."""
    await rig.begin_window()
    before = rig.costs()
    measurement = Measurement(count)
    measurement.began_at = time.monotonic()
    yield measurement
    measurement.ended_at = time.monotonic()
    after = rig.costs()
    nothing = Cost(0.0, 0.0)
    measurement.cpu_s = {
        name: round(cost.cpu_seconds - before.get(name, nothing).cpu_seconds, 4) for name, cost in after.items()
    }
    measurement.rss_mb = {name: round(cost.rss_mb, 1) for name, cost in after.items()}


async def measure_released(rig: Rig, stream: str, consumer: str, target: StreamTarget, count: int) -> Measurement:
    """Let a consumer go and wait for a mark: the span from the first fetch that is served until then."""
    before = await _served(rig, stream, consumer)
    await resume_consumer(rig, stream, consumer)
    began = time.monotonic()
    async with measuring(rig, count) as measurement:
        while await _served(rig, stream, consumer) == before:
            rig.check_running()
            looked_at = time.monotonic()
            if looked_at - began > STALL_SECONDS:
                raise BenchFailed(f"nobody fetches from {stream} {consumer}")
            await asyncio.sleep(SAMPLE_SECONDS)
            began = looked_at
        measurement.seconds = await target.reached() - began
    measurement.moments = [at - began for at in target.moments]
    return measurement


async def _served(rig: Rig, stream: str, consumer: str) -> int:
    response = await jetstream_request(rig, f"CONSUMER.INFO.{rig.subjects.stream(stream)}.{consumer}")
    return int(response["delivered"]["consumer_seq"])


def write_json(path: Path, content: object) -> None:
    """Write a file for a process of the bench."""
    path.write_bytes(msgspec.json.encode(content))
