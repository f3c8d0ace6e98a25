"""Reading 100 shoots by name: from Redis, against the last messages of their subjects from the stream directly."""

from collections.abc import Sequence

import msgspec

from gardenbus.cli.bench.alternatives.announcing import (
    STREAM,
    TIMEOUT_SECONDS,
    connected,
    create_stream,
    fill,
    subject,
)
from gardenbus.cli.bench.alternatives.shoots import documents, write_records
from gardenbus.cli.bench.alternatives.spending import Means, Row, Size, Spent, alternate, compared, spent
from gardenbus.cli.bench.rig import BenchFailed, Rig
from gardenbus.common.adapters.jetstream_connection import Connection, publish_command
from gardenbus.common.resources.document import encode
from gardenbus.common.resources.keys import ObjectKey

AT_ONCE = 100
READS = 200


async def reading(rig: Rig, size: Size, durability: str) -> list[Row]:
    """The same shoots from both; neither decodes the manifests."""
    shoots = documents("read", AT_ONCE)
    keys = await write_records(rig, shoots)
    reads = size.of(READS)
    async with connected(rig) as connection:
        await create_stream(connection, rig)
        await fill(connection, [encode(document) for document in shoots])
        subjects = [subject(number) for number in range(AT_ONCE)]
        ours, other = "HMGET of each, pipelined", "one direct get"
        means = {ours: _from_redis(rig, keys, reads), other: _from_stream(rig, connection, subjects, reads)}
        taken = await alternate(size, means)
    return [
        compared(
            f"{AT_ONCE} shoots read ({durability})",
            taken,
            ours=ours,
            other=other,
            unit="shoots",
            kept="Redis: what it says is what the next write is checked against",
        )
    ]


def _from_redis(rig: Rig, keys: Sequence[ObjectKey], reads: int) -> Means:
    async def read() -> None:
        for _ in range(reads):
            if None in await rig.store.get_many(keys):
                raise BenchFailed("a shoot is not in the store")

    async def measured() -> Spent:
        return await spent(rig, ["redis"], reads * len(keys), read)

    return measured


def _from_stream(rig: Rig, connection: Connection, subjects: Sequence[str], reads: int) -> Means:
    question = msgspec.json.encode({"multi_last": subjects})
    endpoint = f"$JS.API.DIRECT.GET.{STREAM}"

    async def read() -> None:
        for _ in range(reads):
            reply, future = connection.awaited_replies(len(subjects) + 1)  # the last one says that there are no more
            answers = await connection.exchange(
                (publish_command(endpoint, question, reply=reply),),
                future,
                about=endpoint,
                timeout_seconds=TIMEOUT_SECONDS,
            )
            if not all(answer.body for answer in answers[:-1]):
                raise BenchFailed("a shoot is not in the stream")

    async def measured() -> Spent:
        return await spent(rig, ["nats"], reads * len(subjects), read)

    return measured
