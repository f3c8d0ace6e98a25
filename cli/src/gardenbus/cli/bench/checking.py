"""What a measurement led to: a figure without its result is none."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence

from gardenbus.cli.bench.loading import Known, announced
from gardenbus.cli.bench.pipes import LOOK_SECONDS, Mark, asked
from gardenbus.cli.bench.rig import BenchFailed, Rig

TOGETHER = 2000

ACKS_SECONDS = 30.0


async def usage(rig: Rig) -> Mapping[str, int]:
    """Shoots per seed."""
    return (await rig.store.usage()).seeds


async def check_bound(rig: Rig, shoots: Sequence[Known], before: Mapping[str, int], mark: Mark) -> None:
    """Raise BenchFailed unless each shoot was bound, exactly once, and usage says so too.

    A bind raises the generation from 1 to 2 and announces one binding: a second one would show in either.
    """
    where: Counter[str] = Counter()
    for known, (seed, generation) in zip(shoots, await _fields(rig, shoots, "seed", "gen"), strict=True):
        if not seed:
            raise BenchFailed(f"{known.key} was not placed")
        if generation != "2":
            raise BenchFailed(f"{known.key} has the generation {generation}: it was not bound exactly once")
        where[seed] += 1
    after = await usage(rig)
    wrong = [seed for seed in {*before, *after} if after.get(seed, 0) - before.get(seed, 0) != where[seed]]
    if wrong:
        raise BenchFailed(f"usage of {min(wrong)} does not say what was bound there")
    await announced(rig)
    await mark.check_not_passed()


async def check_stored(rig: Rig, shoots: Sequence[Known], mark: Mark) -> None:
    """Raise BenchFailed unless each shoot was created, once, waits for a seed, and nothing was rejected."""
    for known, (version, generation, seed) in zip(
        shoots, await _fields(rig, shoots, "ver", "gen", "seed"), strict=True
    ):
        if not version or generation != "1" or seed:
            raise BenchFailed(f"{known.key} is not stored as it was sent")
    await announced(rig)
    await mark.check_not_passed()
    for stream, patience in (("REQUESTS", ACKS_SECONDS), ("REJECTED", 0.0)):
        if left := await _left(rig, stream, patience):
            raise BenchFailed(f"{left} messages are left on {stream}")


async def _left(rig: Rig, stream: str, patience_seconds: float) -> int:
    """How many messages a stream still has: acknowledgements may be under way when all is announced."""
    deadline = asyncio.get_running_loop().time() + patience_seconds
    while True:
        left = int((await asked(rig, f"STREAM.INFO.{rig.subjects.stream(stream)}"))["state"]["messages"])
        if not left or asyncio.get_running_loop().time() >= deadline:
            return left
        await asyncio.sleep(LOOK_SECONDS)


async def _fields(rig: Rig, shoots: Sequence[Known], *names: str) -> list[list[str]]:
    found: list[list[str]] = []
    for start in range(0, len(shoots), TOGETHER):
        replies = await rig.redis.pipeline(
            [("HMGET", rig.redis.key(f"o:{known.key.stored}"), *names) for known in shoots[start : start + TOGETHER]]
        )
        found += [[(value or b"").decode() for value in reply] for reply in replies]
    return found
