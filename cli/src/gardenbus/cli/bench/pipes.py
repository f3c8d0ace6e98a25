"""What scenarios do alike: hold a consumer back until all is ready, let it go, watch a stream, count the cost."""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from gardenbus.cli.bench.rig import BenchFailed, Cost, Rig

LOOK_SECONDS = 0.005
STALL_SECONDS = 60.0


async def hold(rig: Rig, stream: str, consumer: str) -> None:
    """Pause a consumer: what it waits for stays in the stream."""
    await _pause(rig, stream, consumer, datetime.now(UTC) + timedelta(hours=1))


async def let_go(rig: Rig, stream: str, consumer: str) -> None:
    """Resume a consumer."""
    await _pause(rig, stream, consumer, None)


async def _pause(rig: Rig, stream: str, consumer: str, until: datetime | None) -> None:
    body = {} if until is None else {"pause_until": until.isoformat()}
    subject = f"$JS.API.CONSUMER.PAUSE.{rig.subjects.stream(stream)}.{consumer}"
    answer = msgspec.json.decode(await rig.bus.request(subject, msgspec.json.encode(body)))
    if "error" in answer:
        raise BenchFailed(f"consumer {consumer}: {answer['error']}")


async def last_sequence(rig: Rig, stream: str) -> int:
    """The last sequence of a stream."""
    return (await rig.bus.position(rig.subjects.stream(stream))).sequence


async def until_sequence(rig: Rig, stream: str, wanted: int) -> float:
    """Wait until a stream has come to a sequence; answers the time (monotonic) at which it was seen there."""
    seen, moved_at = -1, time.monotonic()
    while True:
        now = await last_sequence(rig, stream)
        at = time.monotonic()
        if now >= wanted:
            return at
        if now != seen:
            seen, moved_at = now, at
        elif at - moved_at > STALL_SECONDS:
            raise BenchFailed(f"{stream} stands still at {now}, {wanted - now} short (logs: {rig.directory.logs})")
        await asyncio.sleep(LOOK_SECONDS)


class Span:
    """What was used between the beginning and the end of a measurement."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.cpu_s: Mapping[str, float] = {}
        self.rss_mb: Mapping[str, float] = {}


@asynccontextmanager
async def counting(rig: Rig) -> AsyncGenerator[Span]:
    """Count CPU seconds per process over a block; `seconds` is the block's own to set."""
    before = rig.costs()
    span = Span()
    yield span
    after = rig.costs()
    nothing = Cost(0.0, 0.0)
    span.cpu_s = {
        name: round(cost.cpu_seconds - before.get(name, nothing).cpu_seconds, 2) for name, cost in after.items()
    }
    span.rss_mb = {name: round(cost.rss_mb, 1) for name, cost in after.items()}


def write_json(path: Path, content: object) -> None:
    """Write a file for a process of the bench."""
    path.write_bytes(msgspec.json.encode(content))
