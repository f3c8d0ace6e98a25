"""Checks of a measurement's outcome: a rate counts only if all objects are as they should be."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence

from gardenbus.bench.harness.loading import StoredShoot, announced
from gardenbus.bench.harness.measurement import SAMPLE_SECONDS, StreamTarget, jetstream_request
from gardenbus.bench.harness.retries import BenchFailed
from gardenbus.bench.harness.rig import Rig

TOGETHER = 2000

ACKS_SECONDS = 30.0


async def usage(rig: Rig) -> Mapping[str, int]:
    """Shoots per seed."""
    return (await rig.store.usage()).seeds


async def check_bound(rig: Rig, shoots: Sequence[StoredShoot], before: Mapping[str, int], target: StreamTarget) -> None:
    """Raise BenchFailed unless each shoot was bound, exactly once, and usage agrees.

    A bind raises the generation from 1 to 2 and announces one binding: a second one would show in either.
    """
    where: Counter[str] = Counter()
    for shoot, (seed, generation) in zip(shoots, await _fields(rig, shoots, "seed", "gen"), strict=True):
        if not seed:
            raise BenchFailed(f"{shoot.key} was not placed")
        if generation != "2":
            raise BenchFailed(f"{shoot.key} has the generation {generation}: it was not bound exactly once")
        where[seed] += 1
    after = await usage(rig)
    wrong = [seed for seed in {*before, *after} if after.get(seed, 0) - before.get(seed, 0) != where[seed]]
    if wrong:
        raise BenchFailed(f"usage of {min(wrong)} does not say what was bound there")
    await announced(rig)
    await target.check_not_passed()


async def check_stored(rig: Rig, shoots: Sequence[StoredShoot], target: StreamTarget) -> None:
    """Raise BenchFailed unless each shoot was created, once, waits for a seed, and nothing was rejected."""
    for shoot, (version, generation, seed) in zip(
        shoots, await _fields(rig, shoots, "ver", "gen", "seed"), strict=True
    ):
        if not version or generation != "1" or seed:
            raise BenchFailed(f"{shoot.key} is not stored as it was sent")
    await announced(rig)
    await target.check_not_passed()
    for stream, timeout_seconds in (("REQUESTS", ACKS_SECONDS), ("REJECTED", 0.0)):
        if left := await _left(rig, stream, timeout_seconds):
            raise BenchFailed(f"{left} messages are left on {stream}")


async def _left(rig: Rig, stream: str, timeout_seconds: float) -> int:
    """Number of messages that a stream still has: acknowledgements may be under way when all is announced."""
    deadline = asyncio.get_running_loop().time() + timeout_seconds
    while True:
        left = int((await jetstream_request(rig, f"STREAM.INFO.{rig.subjects.stream(stream)}"))["state"]["messages"])
        if not left or asyncio.get_running_loop().time() >= deadline:
            return left
        await asyncio.sleep(SAMPLE_SECONDS)


async def _fields(rig: Rig, shoots: Sequence[StoredShoot], *names: str) -> list[list[str]]:
    found: list[list[str]] = []
    for start in range(0, len(shoots), TOGETHER):
        replies = await rig.redis.pipeline(
            [("HMGET", rig.redis.key(f"o:{shoot.key.stored}"), *names) for shoot in shoots[start : start + TOGETHER]]
        )
        found += [[(value or b"").decode() for value in reply] for reply in replies]
    return found
