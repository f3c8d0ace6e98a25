"""A stream like OBJECTS, a connection of one's own to it, and messages as the relay's are in size."""

import contextlib
from collections.abc import AsyncGenerator, Sequence

from gardenbus.cli.bench.rig import BenchFailed, Rig
from gardenbus.common.adapters.jetstream_api import Refused, call, decode_answer
from gardenbus.common.adapters.jetstream_connection import Connection, encode_headers, publish_command
from gardenbus.common.adapters.jetstream_publisher import BATCH_LIMIT
from gardenbus.common.adapters.jetstream_streams import MONITOR_PERIOD_SECONDS, streams

STREAM = "ALTERNATIVES"
SUBJECTS = "bench.changed"
BODY_BYTES = 3000
TIMEOUT_SECONDS = 60.0

_HEADERS = {
    "Gardenbus-Version": "1234567",
    "Gardenbus-Uid": "00000000-0000-0000-0000-000000000001",
    "Gardenbus-Change": "updated",
}


def subject(number: int) -> str:
    """Where the announcement of object `number` goes."""
    return f"{SUBJECTS}.shoot.garden-bench.shoot-{number:07d}"


def headers(**more: str | int) -> bytes:
    """A header block as long as an announcement's; underscores of further names become hyphens."""
    return encode_headers({**_HEADERS, **{name.replace("_", "-"): str(value) for name, value in more.items()}})


@contextlib.asynccontextmanager
async def connected(rig: Rig) -> AsyncGenerator[Connection]:
    """A connection beside the rig's."""
    connection = Connection()
    await connection.open(rig.addresses.nats_url, "bench", inbox_prefix="_INBOX", on_reconnect=lambda: None)
    try:
        yield connection
    finally:
        await connection.close()


async def create_stream(connection: Connection, rig: Rig) -> None:
    """A stream with the settings of OBJECTS, that takes fast batches too."""
    settings = dict(streams(rig.subjects, MONITOR_PERIOD_SECONDS)[rig.subjects.stream("OBJECTS")])
    settings |= {"name": STREAM, "subjects": [f"{SUBJECTS}.>"], "allow_batched": True}
    try:
        await call(connection, f"STREAM.CREATE.{STREAM}", settings)
    except Refused as refused:
        raise BenchFailed(f"the server does not take such a stream: {refused}") from refused


async def fill(connection: Connection, bodies: Sequence[bytes]) -> None:
    """Store a body on each subject, in turn."""
    for start in range(0, len(bodies), BATCH_LIMIT):
        part = bodies[start : start + BATCH_LIMIT]
        reply, future = connection.awaited_replies()
        commands: list[bytes] = []
        for number, body in enumerate(part, start=1):
            batch = {"Nats_Batch_Id": f"fill-{start}", "Nats_Batch_Sequence": number}
            is_last = number == len(part)
            block = headers(**batch, Nats_Batch_Commit=1) if is_last else headers(**batch)
            commands.append(publish_command(subject(start + number - 1), body, block, reply if is_last else ""))
        answers = await connection.exchange(commands, future, about=SUBJECTS, timeout_seconds=TIMEOUT_SECONDS)
        decode_answer(answers[0].body)
