"""Yardsticks: the same work on the same servers each time, with no code of ours in it, and what it took of the CPU.

| yardstick | one unit | CPU of |
|---|---|---|
| python | a document decoded, walked and encoded (`yardstick_loop`) | a process of its own |
| redis | a fixed function in Lua: hashes, a sorted set, a stream, texts | redis-server |
| nats | a message published to a work queue, acknowledged, fetched, and acknowledged by who fetched it | nats-server |

All three run at the same time, as services and servers do, so that they share the cores, too.
"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator

from gardenbus.bench.guard import yardstick_loop
from gardenbus.bench.guard.jetstream_wire import JetStreamWire, WireFailed, connect
from gardenbus.bench.guard.readings import Yardsticks
from gardenbus.bench.harness.process_costs import cpu_seconds
from gardenbus.bench.harness.retries import BenchFailed
from gardenbus.bench.harness.rig import Rig

DOCUMENTS, DOCUMENTS_TOGETHER = 1500, 15
CALLS, CALLS_TOGETHER = 2000, 25
MESSAGES, MESSAGES_TOGETHER = 3000, 100
"""In all, and at a time: services wake up for as little, and find the caches with what others have left there."""
BODY = b"yardstick " * 280
"""A body of 2.8 KB."""

TIMEOUT_SECONDS = 120.0
"""That ends a hang, and nothing else."""

STREAM, SUBJECT, CONSUMER = "YARDSTICK", "yardstick.work", "taker"
FUNCTION = "yardstick"
KEYS = ("yardstick:hashes:", "yardstick:order", "yardstick:stream")
LUA = """#!lua name=yardstick
redis.register_function('yardstick', function(keys, args)
  local number, text = tonumber(args[1]), args[2]
  local fields = {}
  for part = 1, 12 do
    fields[#fields + 1] = 'field' .. part
    fields[#fields + 1] = string.sub(text, part, part + 80) .. ':' .. number
  end
  local key = keys[1] .. (number % 2000)
  redis.call('HSET', key, unpack(fields))
  local found = redis.call('HMGET', key, 'field1', 'field5', 'field12')
  local seen = {}
  for _, value in ipairs(found) do
    for word in string.gmatch(value, '%a+') do seen[word] = (seen[word] or 0) + 1 end
  end
  local packed = cmsgpack.unpack(cmsgpack.pack({number = number, found = found, seen = seen}))
  redis.call('ZADD', keys[2], packed.number, key)
  redis.call('XADD', keys[3], 'MAXLEN', '~', 1000, '*', 'key', key, 'text', text)
  return #packed.found
end)
"""


class YardstickRunner:
    """Reads the yardsticks; those of servers only on a rig."""

    def __init__(self, python: asyncio.subprocess.Process, rig: Rig | None, wire: JetStreamWire | None) -> None:
        self._python = python
        self._rig = rig
        self._wire = wire

    async def read(self) -> Yardsticks:
        """CPU seconds of one unit of each, all at the same time. Raises BenchFailed when a process has ended."""
        if self._rig is None or self._wire is None:
            return {"python": await self._documents()}
        redis, nats = _pid(self._rig, "redis"), _pid(self._rig, "nats")
        before = cpu_seconds(redis), cpu_seconds(nats)
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                python, _, _ = await asyncio.gather(
                    self._documents(), self._calls(self._rig), self._messages(self._wire)
                )
        except (TimeoutError, WireFailed, OSError) as error:
            raise BenchFailed(f"the yardsticks did not come to an end: {error!r}") from error
        return {
            "python": python,
            "redis": (cpu_seconds(redis) - before[0]) / CALLS,
            "nats": (cpu_seconds(nats) - before[1]) / MESSAGES,
        }

    async def _documents(self) -> float:
        assert self._python.stdin is not None
        assert self._python.stdout is not None
        found: list[float] = []
        for _ in range(0, DOCUMENTS, DOCUMENTS_TOGETHER):
            self._python.stdin.write(f"{DOCUMENTS_TOGETHER}\n".encode())
            await self._python.stdin.drain()
            line = await self._python.stdout.readline()
            if not line:
                raise BenchFailed("the yardstick's own process has ended")
            found.append(float(line))
        return sum(found) / len(found)

    async def _calls(self, rig: Rig) -> None:
        for start in range(0, CALLS, CALLS_TOGETHER):
            numbers = range(start, start + CALLS_TOGETHER)
            await rig.redis.pipeline([("FCALL", FUNCTION, 3, *KEYS, str(number), BODY) for number in numbers])

    async def _messages(self, wire: JetStreamWire) -> None:
        for _ in range(0, MESSAGES, MESSAGES_TOGETHER):
            await wire.publish(SUBJECT, [BODY] * MESSAGES_TOGETHER)
            await wire.fetch(STREAM, CONSUMER, MESSAGES_TOGETHER)


def _pid(rig: Rig, name: str) -> int:
    pid = rig.processes[name].pid
    if pid is None:
        raise BenchFailed(f"{name} has ended")
    return pid


@contextlib.asynccontextmanager
async def yardsticks(rig: Rig | None) -> AsyncGenerator[YardstickRunner]:
    """Yardsticks on the servers of a rig, warmed up; without one Python's alone."""
    python = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", yardstick_loop.__file__),  # isolated: nobody samples it
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with contextlib.AsyncExitStack() as stack:
            wire = None
            if rig is not None:
                wire = await stack.enter_async_context(connect(rig.addresses.nats_url))
                await _prepare(rig, wire)
            runner = YardstickRunner(python, rig, wire)
            await runner.read()
            yield runner
    finally:
        if python.stdin is not None:
            python.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            python.kill()
        await python.wait()


async def _prepare(rig: Rig, wire: JetStreamWire) -> None:
    await rig.redis.command("FUNCTION", "LOAD", "REPLACE", LUA)
    stream = {"name": STREAM, "subjects": [SUBJECT], "retention": "workqueue", "storage": "file", "num_replicas": 1}
    await wire.request(f"STREAM.CREATE.{STREAM}", stream)
    consumer = {"durable_name": CONSUMER, "ack_policy": "explicit", "max_ack_pending": MESSAGES}
    await wire.request(f"CONSUMER.DURABLE.CREATE.{STREAM}.{CONSUMER}", {"stream_name": STREAM, "config": consumer})
