"""Announcing in groups: a chain of messages, against an atomic batch, acknowledged messages, and a fast batch.

Each group is acknowledged before the next one leaves, as the relay has it. What each promises:

| means   | stored            | nobody else wrote in between                                         |
|---------|-------------------|----------------------------------------------------------------------|
| batch   | whole or not      | asked of the first message                                           |
| singles | each for itself   | not asked                                                            |
| chain   | up to a refusal   | asked of each message, by its predecessor's id; the last answer says |
| fast    | up to a refusal   | asked of each message; the batch ends there                          |
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence

from gardenbus.cli.bench.alternatives.announcing import (
    BODY_BYTES,
    SUBJECTS,
    TIMEOUT_SECONDS,
    connected,
    create_stream,
    headers,
    subject,
)
from gardenbus.cli.bench.alternatives.spending import Means, Row, Size, Spent, alternate, compared, spent
from gardenbus.cli.bench.rig import BenchFailed, Rig
from gardenbus.common.adapters.jetstream_api import Refused, decode_answer
from gardenbus.common.adapters.jetstream_connection import Connection, RawMessage, publish_command
from gardenbus.common.adapters.jetstream_publisher import SMALLEST_BATCH

GROUPS = {1: 100, 4: 80, 16: 60, 64: 20, 256: 5, 1000: 2}
"""Messages in a group, and how many groups are measured in a round."""

OBJECTS = 5000
FLOW = 500
"""Messages after which a fast batch is to hear from the server."""

_OPEN, _ADD, _COMMIT = 0, 1, 2
_BODY = b"x" * BODY_BYTES
_NAMES = {"batch": "atomic batch", "singles": "acknowledged one by one", "chain": "chain", "fast": "fast batch"}

Group = Callable[[int], Awaitable[None]]


async def publishing(rig: Rig, size: Size, durability: str) -> list[Row]:
    """Groups of every size by every means."""
    rows: list[Row] = []
    async with connected(rig) as connection:
        await create_stream(connection, rig)
        sender = Sender(connection)
        await sender.open()
        for many, groups in GROUPS.items():
            sent = _sent(rig, sender, many, size.of(groups))
            taken = await alternate(size, {_NAMES[name]: means for name, means in sent.items()})
            rows += [
                compared(
                    f"groups of {many} ({durability})",
                    taken,
                    ours=_NAMES["chain"],
                    other=_NAMES[other],
                    unit="messages",
                    kept=_kept(many),
                )
                for other in ("batch", "singles", "fast")
            ]
    return rows


def _kept(many: int) -> str:
    if many == 1:
        return "one message, with the sequence that it expects"
    return "chain; batch where each write is synced" if many >= SMALLEST_BATCH else "chain"


def _sent(rig: Rig, sender: "Sender", many: int, groups: int) -> dict[str, Means]:
    """Each means of sending so many groups."""

    def means(send: Group) -> Means:
        async def all_groups() -> None:
            for _ in range(groups):
                await send(many)

        async def measured() -> Spent:
            return await spent(rig, ["nats"], many * groups, all_groups)

        return measured

    return {name: means(getattr(sender, name)) for name in _NAMES}


class Sender:
    """Sends groups as the stream's only publisher, so that it knows the last sequence."""

    def __init__(self, connection: Connection) -> None:
        self.last = 0
        """The last sequence of the stream."""

        self._connection = connection
        self._number = 0
        self._inbox = connection.new_inbox()
        self._ended: asyncio.Future[bytes] | None = None

    async def open(self) -> None:
        """Listen to what is said of fast batches."""
        await self._connection.listen(f"{self._inbox}.>", self._hear)

    async def batch(self, many: int) -> None:
        """Whole or not at all."""
        name = secrets.token_hex(11)
        reply, future = self._connection.awaited_replies()
        commands: list[bytes] = []
        for number in range(1, many + 1):
            extra: dict[str, str | int] = {"Nats_Batch_Id": name, "Nats_Batch_Sequence": number}
            if number == 1:
                extra["Nats_Expected_Last_Sequence"] = self.last
            if number == many:
                extra["Nats_Batch_Commit"] = 1
            commands.append(self._command(extra, reply if number == many else ""))
        await self._exchange(commands, future)

    async def singles(self, many: int) -> None:
        """Each acknowledged, all on their way at once."""
        reply, future = self._connection.awaited_replies(many)
        await self._exchange([self._command({}, reply) for _ in range(many)], future)

    async def chain(self, many: int) -> None:
        """Each after its predecessor, whose id it expects; the last one is acknowledged."""
        attempt = secrets.token_hex(8)
        reply, future = self._connection.awaited_replies()
        commands: list[bytes] = []
        after: dict[str, str | int] = {"Nats_Expected_Last_Sequence": self.last}
        for number in range(1, many + 1):
            extra = {**after, "Nats_Msg_Id": f"{attempt}.{number}"}
            commands.append(self._command(extra, reply if number == many else ""))
            after = {"Nats_Expected_Last_Msg_Id": f"{attempt}.{number}"}
        await self._exchange(commands, future)

    async def fast(self, many: int, *, wrong_at: int | None = None) -> None:
        """Each after its predecessor, in a fast batch. `wrong_at`: which one expects what is not so (from 0)."""
        self._ended = asyncio.get_running_loop().create_future()
        prefix = f"{self._inbox}.{secrets.token_hex(11)}.{FLOW}.fail"
        commands: list[bytes] = []
        for number in range(many):
            extra: dict[str, str | int] = (
                {"Nats_Expected_Last_Sequence": 1} if number == wrong_at else self._after(number)
            )
            operation = _COMMIT if number == many - 1 else _ADD if number else _OPEN
            commands.append(self._command(extra, f"{prefix}.{number + 1}.{operation}.$FI"))
        await self._connection.send(commands)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            self._take(await self._ended)

    def _after(self, number: int) -> dict[str, str | int]:
        return {"Nats_Expected_Last_Sequence": self.last + number}

    def _command(self, extra: dict[str, str | int], reply: str) -> bytes:
        self._number = (self._number + 1) % OBJECTS
        return publish_command(subject(self._number), _BODY, headers(**extra), reply)

    async def _exchange(self, commands: Sequence[bytes], future: "asyncio.Future[list[RawMessage]]") -> None:
        answers = await self._connection.exchange(commands, future, about=SUBJECTS, timeout_seconds=TIMEOUT_SECONDS)
        self._take(answers[-1].body)

    def _take(self, answer: bytes) -> None:
        try:
            self.last = int(decode_answer(answer)["seq"])
        except Refused as refused:
            raise BenchFailed(str(refused)) from refused

    def _hear(self, message: RawMessage) -> None:
        """Of a fast batch only the last word counts: what says how it goes on carries no stream."""
        if self._ended is not None and not self._ended.done() and b'"stream"' in message.body:
            self._ended.set_result(message.body)
