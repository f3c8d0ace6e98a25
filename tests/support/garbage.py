"""Garbage for every subject of the bus, and a publisher that sends it as it is."""

import asyncio
import json
import random
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self
from urllib.parse import urlsplit

from gardenbus.common.api.keys import Header
from gardenbus.docs.channels import channels
from tests.support.eventually import HANG_SECONDS

HEADER_NAMES: Sequence[str] = sorted(
    {value for name, value in vars(Header).items() if name.isupper()} | {"traceparent", "Nats-Msg-Id", "ce-id"}
)

TOKENS = (
    b"x",
    b"_",
    b"shoot",
    b"seed",
    b"managedseedset",
    b"membercluster",
    b"clusterresourceplacement",
    b"work",
    b"event",
    b"seed-a",
    b"apollo",
    b"m",
    b"fleet-member-m",
    b"member:m",
    b"garden-dev",
    b"default-scheduler",
    "n\u00e4me".encode(),
    b"%00",
    b"\xff\xfe",
    b"a" * 300,
    b"-",
    b"$G",
)

NUMBERS = (b"", b"-1", b"9" * 5000, "\u0661".encode(), "\u00b2".encode(), b"1e9", b"0x1", b"\xff", b"NaN", b"true")

BODIES: Sequence[bytes] = (
    b"",
    b"\0",
    b"\xff\xfe\xfa",
    b"null",
    b"[]",
    b"{}",
    b"0",
    b'"text"',
    b"[" * 20_000,
    b'{"a":' * 20_000,
    b"- " * 5_000,
    b"&a [*a]",
    b"a: &a [x]\nb: [*a, *a]",
    b"!!python/object:os.system {}",
    b'{"status": 1e999}',
    b'{"status": NaN}',
    b'{"status": {"conditions": [null, 1, {"type": 2}]}}',
    rb'{"status": {"lastError": "\ud800"}, "message": "\udfff", "reason": "\ud800", "type": "Warning"}',
    rb'{"kind": "Shoot", "apiVersion": "core.gardener.cloud/v1beta1", "metadata": {"name": "\ud800"}}',
    json.dumps({"kind": "Shoot", "metadata": {"name": 7, "labels": [], "annotations": {"a": None}}}).encode(),
    json.dumps({"kind": "Seed", "metadata": {"name": "seed-a"}, "spec": [], "status": "x"}).encode(),
    json.dumps({"kind": "Lease", "metadata": {"name": "seed-a"}, "spec": {"holderIdentity": 1}}).encode(),
    json.dumps({"kind": "Work", "metadata": {"name": "w", "namespace": "fleet-member-m"}, "spec": 5}).encode(),
    json.dumps({"kind": ["a"], "metadata": {"uid": {}, "generation": -(2**70), "resourceVersion": []}}).encode(),
    json.dumps({"limit": -1, "continue": "\0", "namespace": 1, "name": [], "seed": None, "patch": 3}).encode(),
    b'{"kind": "' + b"k" * 50_000 + b'"}',
    b"x" * 100_000,
)


class Garbage(NamedTuple):
    """A message that nobody should send."""

    subject: bytes
    headers: bytes
    body: bytes


def garbage(prefix: str, seed: int, per_channel: int) -> Iterator[Garbage]:
    """Messages for every channel: subjects too short, too long and odd, all kinds of headers and bodies."""
    random_source = random.Random(seed)
    for channel in channels(prefix):
        for number in range(per_channel):
            body = BODIES[(number + random_source.randrange(len(BODIES))) % len(BODIES)]
            yield Garbage(_subject(channel.address, random_source), garbage_headers(random_source), body)


def _subject(address: str, random_source: random.Random) -> bytes:
    def value(_match: re.Match[str]) -> str:
        return random_source.choice(TOKENS).decode("latin-1")

    tokens = re.sub(r"\{[a-zA-Z]+\}", value, address).encode("latin-1").split(b".")
    change = random_source.random()
    fixed = address.split(".{", maxsplit=1)[0].count(".") + 1
    if change < 0.2 and len(tokens) > fixed:
        del tokens[-1]
    elif change < 0.3:
        tokens += [random_source.choice(TOKENS) for _ in range(random_source.randrange(1, 6))]
    return b".".join(tokens)


def garbage_headers(random_source: random.Random) -> bytes:
    """A block of headers, or none."""
    if random_source.random() < 0.3:
        return b""
    chosen = random_source.sample(HEADER_NAMES, random_source.randrange(1, 5))
    lines = [name.encode() + b": " + random_source.choice((*NUMBERS, *TOKENS)) for name in chosen]
    if random_source.random() < 0.2:
        lines.append(random_source.choice((b"no colon", b": no name", b"twice: 1\r\ntwice: 2", b"\xff: \xff")))
    return b"NATS/1.0\r\n" + b"\r\n".join(lines) + b"\r\n\r\n"


class RawPublisher:
    """Publishes bytes: a client library would refuse half of them."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, url: str) -> Self:
        """Connect to a server without credentials."""
        address = urlsplit(url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        await reader.readline()
        writer.write(b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true}\r\n')
        return cls(reader, writer)

    async def publish(self, message: Garbage) -> None:
        """Send one message."""
        subject, headers, body = message
        if headers:
            self._writer.write(b"HPUB %b _INBOX.garbage %d %d\r\n" % (subject, len(headers), len(headers) + len(body)))
        else:
            self._writer.write(b"PUB %b _INBOX.garbage %d\r\n" % (subject, len(body)))
        self._writer.write(headers + body + b"\r\n")
        await self._writer.drain()

    async def close(self) -> Sequence[bytes]:
        """End the connection once the server has read everything; returns the errors that it sent."""
        self._writer.write(b"PING\r\n")
        errors: list[bytes] = []
        while (line := await asyncio.wait_for(self._reader.readline(), HANG_SECONDS)) and not line.startswith(b"PONG"):
            errors.append(line) if line.startswith(b"-ERR") else None
        self._writer.close()
        return errors
