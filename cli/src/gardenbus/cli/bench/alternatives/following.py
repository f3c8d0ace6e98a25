"""Following a stream of objects: whole messages, against their headers alone."""

from gardenbus.cli.bench.alternatives.announcing import BODY_BYTES, STREAM, SUBJECTS, connected, create_stream, fill
from gardenbus.cli.bench.alternatives.spending import Means, Row, Size, Spent, alternate, compared, spent
from gardenbus.cli.bench.rig import BenchFailed, Rig
from gardenbus.common.ports.bus import Delivered, ReplayDone

MESSAGES = 20_000


async def following(rig: Rig, size: Size, durability: str) -> list[Row]:
    """Replay all of it, with bodies and without."""
    count = size.of(MESSAGES)
    async with connected(rig) as connection:
        await create_stream(connection, rig)
        await fill(connection, [b"x" * BODY_BYTES] * count)
    whole, bare = "with bodies", "headers only"
    taken = await alternate(
        size, {whole: _replayed(rig, count, headers_only=False), bare: _replayed(rig, count, headers_only=True)}
    )
    kept = "bodies where objects are held, headers where only names are read"
    return [compared(f"followed ({durability})", taken, ours=whole, other=bare, unit="messages", kept=kept)]


def _replayed(rig: Rig, count: int, *, headers_only: bool) -> Means:
    async def replay() -> None:
        heard = 0
        async with rig.bus.follow(STREAM, [f"{SUBJECTS}.>"], headers_only=headers_only) as follower:
            async for event in follower:
                if isinstance(event, Delivered):
                    heard += 1
                elif isinstance(event, ReplayDone):
                    break
        if heard != count:
            raise BenchFailed(f"heard {heard} of {count} messages")

    async def measured() -> Spent:
        return await spent(rig, ["nats"], count, replay)

    return measured
