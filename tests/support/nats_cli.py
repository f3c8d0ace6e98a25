"""A stand-in for the `nats` command line where the real one is not installed: `pub`, `req` and `sub`, same arguments.

Tests that show a user's session prefer the real command; this one only makes them runnable without it.
Usage: python nats_cli.py [-s URL] pub|req|sub SUBJECT [BODY] [-H NAME:VALUE]… [--raw] [--count N] [--timeout SECONDS]
       [--last-per-subject]
"""

import argparse
import asyncio
import os
import sys

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import ConsumerConfig, DeliverPolicy


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="nats")
    parser.add_argument("-s", "--server", default=os.environ.get("NATS_URL", "nats://127.0.0.1:4222"))
    parser.add_argument("verb", choices=["pub", "req", "sub"])
    parser.add_argument("subject")
    parser.add_argument("body", nargs="?")
    parser.add_argument("-H", "--header", action="append", default=[])
    parser.add_argument("--raw", "-r", action="store_true")
    parser.add_argument("--force-stdin", action="store_true")
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--last-per-subject", action="store_true")
    parser.add_argument("--timeout", default="5s")
    return parser.parse_args()


def _show(message: Msg, *, raw: bool) -> None:
    if not raw:
        print(
            f'[#1] Received on "{message.subject}"',
            *(f"{k}: {v}" for k, v in (message.headers or {}).items()),
            sep="\n",
        )
    print(message.data.decode(errors="replace"), flush=True)


async def _subscribe(client: Client, given: argparse.Namespace) -> None:
    if given.last_per_subject:
        kept = ConsumerConfig(deliver_policy=DeliverPolicy.LAST_PER_SUBJECT)
        jetstream = client.jetstream()  # pyright: ignore[reportUnknownMemberType]
        subscription = await jetstream.subscribe(given.subject, config=kept, ordered_consumer=True)
    else:
        subscription = await client.subscribe(given.subject)  # pyright: ignore[reportUnknownMemberType]
        await client.flush()
    received = 0
    async for message in subscription.messages:
        _show(message, raw=given.raw)
        received += 1
        if received == given.count:
            return


async def _main() -> None:
    given = _arguments()
    client = await nats.connect(given.server)  # pyright: ignore[reportUnknownMemberType]
    body = sys.stdin.buffer.read() if given.force_stdin else (given.body or "").encode()
    headers = dict(header.split(":", 1) for header in given.header) or None
    try:
        if given.verb == "pub":
            await client.publish(given.subject, body, headers=headers)
            await client.flush()
            print(f"Published {len(body)} bytes to {given.subject!r}", file=sys.stderr)
        elif given.verb == "req":
            timeout = float(given.timeout.removesuffix("s"))
            _show(await client.request(given.subject, body, timeout=timeout, headers=headers), raw=given.raw)
        else:
            await _subscribe(client, given)
    finally:
        await client.close()


if __name__ == "__main__":
    asyncio.run(_main())
