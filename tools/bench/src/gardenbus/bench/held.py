"""A large landscape that is filled quickly and held until Ctrl-C, to try pages and commands on.

    python -m gardenbus.bench.held --seeds 10000 --placed 1000000 --waiting 10000 --changes 200

Seeds and placed shoots are stored as a repair of the store would, and announced as the relay would. All else goes the
usual way: shoots that wait are created, queued, and rejected by a scheduler; changes are `garden.apply` messages, which
an apiserver stores and the relay announces. Leases are renewed as gardenlets would. No gardenlet runs.
"""

import argparse
import asyncio
import contextlib
import itertools
import signal
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

from gardenbus.bench.harness.loading import BenchLandscape, create_pending
from gardenbus.bench.harness.rig import Rig, a_rig
from gardenbus.bench.manifests.shoots import NAMESPACE, names, seed_name
from gardenbus.bench.scenarios.heartbeats import Gardenlets
from gardenbus.bench.scenarios.scheduling import prepare, start_scheduler
from gardenbus.common.api.document import Document, encode
from gardenbus.common.ports.bus import Message
from gardenbus.embedded.durability import Durability

TICK_SECONDS = 0.1
RENEWAL_SECONDS = 20.0
"""Between two renewals of one Lease: half of what lifecycle waits for."""

SHOOTS_CAPACITY = 250

READY_SECONDS = 600.0
"""Longest time until a process is ready: it reads what is there, on a machine that may be busy."""


class HeldLandscape(NamedTuple):
    """Its size, and the number of shoots that change each second."""

    seeds: int
    placed: int
    waiting: int
    changes: float


@contextlib.asynccontextmanager
async def held(wanted: HeldLandscape) -> AsyncGenerator[Rig]:
    """A landscape with scheduler, apiserver and dashboard on it; its Leases are renewed, its shoots changed."""
    async with a_rig(Durability.PROCESS, ready_seconds=READY_SECONDS) as rig:
        await prepare(rig, BenchLandscape(wanted.seeds, wanted.placed, "mixed", SHOOTS_CAPACITY), report)
        report_step("starting the apiserver and a scheduler")
        await rig.start("apiserver")
        await start_scheduler(rig)
        await create_pending(rig, "waiting", wanted.waiting, "mixed", report, impossible=True)
        report_step("starting the dashboard")
        await rig.start("dashboard")
        seeds = [seed_name(number) for number in range(wanted.seeds)]
        async with asyncio.TaskGroup() as tasks:
            beating = tasks.create_task(Gardenlets(rig, seeds, RENEWAL_SECONDS).run())
            changing = tasks.create_task(change_shoots(rig, wanted))
            yield rig
            beating.cancel()
            changing.cancel()


async def change_shoots(rig: Rig, wanted: HeldLandscape) -> None:
    """Change the annotation of so many placed shoots a second, one after the other, for ever."""
    began, sent = time.monotonic(), 0
    placed = list(names("placed", wanted.placed))
    while wanted.changes and placed:
        due = int((time.monotonic() - began) * wanted.changes)
        messages = [_change(rig, placed[number % len(placed)], number) for number in range(sent, due)]
        await rig.retries.repeat(partial(rig.bus.publish_many, messages), "changes")
        sent = due
        await asyncio.sleep(TICK_SECONDS)


def _change(rig: Rig, name: str, number: int) -> Message:
    document: Document = {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Shoot",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "annotations": {"bench.gardenbus.dev/change": str(number)},
        },
    }
    return Message(rig.subjects.apply, encode(document))


def report(name: str, done: int, of: int) -> None:
    """Say how far loading is, on stderr."""
    if done == of or done % 50_000 == 0:
        report_step(f"{name}: {done} of {of}")


def report_step(progress: str) -> None:
    """Say what happens, on stderr, with the time."""
    sys.stderr.write(f"{datetime.now(UTC):%H:%M:%S} {progress}\n")
    sys.stderr.flush()


async def hold(wanted: HeldLandscape) -> None:
    """Hold it for ever, and print each 30 s what its processes have used."""
    async with held(wanted) as rig:
        sys.stdout.write(f"export GARDENBUS_NATS_URL={rig.addresses.nats_url}  # logs: {rig.directory.logs}\n")
        for seconds in itertools.count(0, 30):
            used = {name: f"{cost.rss_mb:.1f} MB {cost.cpu_seconds:.1f} s" for name, cost in rig.costs().items()}
            sys.stdout.write(f"{seconds} s: {used}\n")
            sys.stdout.flush()
            await asyncio.sleep(30)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the sizes and hold the landscape."""
    parser = argparse.ArgumentParser(prog="gardenbus.bench.held", description="Fill a large landscape and hold it.")
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--placed", type=int, default=100_000)
    parser.add_argument("--waiting", type=int, default=0)
    parser.add_argument("--changes", type=float, default=0.0, help="shoots changed each second")
    read = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends like Ctrl-C: servers are stopped, state removed
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(hold(HeldLandscape(read.seeds, read.placed, read.waiting, read.changes)))


if __name__ == "__main__":
    main()
