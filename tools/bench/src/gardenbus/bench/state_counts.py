"""Cost of keeping shoots counted by state: each write of the store with and without it, on one Redis, in turn.

    python -m gardenbus.bench.state_counts --shoots 2000 --rounds 5

The functions without are those of the store with the counting cut out of their text. What is measured is the time
of the processor that Redis takes, by its own account, so that a busy machine disturbs it little.
"""

import argparse
import asyncio
import statistics
import sys
from collections.abc import Sequence
from typing import NamedTuple

from gardenbus.bench.harness.loading import BULK, LEAD_SECONDS
from gardenbus.bench.harness.retries import BenchFailed
from gardenbus.bench.harness.rig import Rig, a_rig
from gardenbus.bench.manifests.shoots import basics, names, seed, seed_name, shoot
from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.adapters.redis.function_library import LIBRARY, Library, join_files, texts
from gardenbus.common.adapters.redis.store import RedisStore
from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.store import Creation, SeedBinding
from gardenbus.embedded.durability import Durability
from gardenbus.relay.adapters.redis_outbox import RedisOutbox

SEEDS = 20
TOGETHER = 100
"""Shoots in one call of creations and of binds."""

STEPS = ("create", "bind", "report", "delete")
"""`report`: an update of the status that moves a shoot from one state to another."""

CUT = (
    ("local counted = move_shoot_count(P, item.ns, item.name, {", "local counted = ({"),
    ("created = object.created, del = '', pend = '', seed = item.seed, op = object.op, cnt = object.cnt})", "})"),
    (", 'cnt', counted)", ")"),
    ("                'created', 'op', 'cnt', 'after'}", "                'created', 'after'}"),
    ("local function count_shoot(P, object_key, ns, name)\n", "local function count_shoot()\n  do return end\n"),
    ("local function uncount_shoot(P, object_key, ns, name)\n", "local function uncount_shoot()\n  do return end\n"),
)
"""Parts taken out of the text, each with what comes in its place."""


class StepCosts(NamedTuple):
    """Microseconds of Redis a shoot, a number a round."""

    counted: Sequence[float]
    uncounted: Sequence[float]


def library_without_counts() -> Library:
    """The store's functions without the counting. Raises BenchFailed when their text is another by now."""
    files = dict(texts())
    for taken, instead in CUT:
        places = [name for name, text in files.items() if taken in text]
        if not places:
            raise BenchFailed(f"the store's functions have no {taken!r} any more: CUT has to follow them")
        files |= {name: files[name].replace(taken, instead) for name in places}
    return join_files(files)


class _Landscape:
    """Shoots of one prefix, written by one version of the functions."""

    def __init__(self, rig: Rig, prefix: str, library: Library) -> None:
        self._connection = RedisConnection(rig.addresses.redis_url, prefix, timeout_seconds=60.0, library=library)
        self._outbox = RedisOutbox(self._connection, rig.clock, leader="bench")
        self.store = RedisStore(self._connection, rig.clock, reporter="bench")

    async def open(self) -> None:
        """Open the store and create what shoots are written against."""
        await self._connection.ensure_ready()
        await self._outbox.lead(LEAD_SECONDS)
        await self._outbox.open(0, 0)
        for document in (*basics("uniform"), *(seed(number, "uniform") for number in range(SEEDS))):
            await self.store.create(document)

    async def emptied(self) -> None:
        """Forget the outbox, which nobody reads here."""
        await self._connection.command("DEL", self._connection.key("outbox"))
        await self._outbox.lead(LEAD_SECONDS)

    async def spent(self) -> float:
        """The processor's seconds that Redis has used so far."""
        lines = bytes(await self._connection.command("INFO", "cpu")).decode().splitlines()
        values = dict(line.split(":") for line in lines if ":" in line)
        return float(values["used_cpu_user_main_thread"]) + float(values["used_cpu_sys_main_thread"])

    async def close(self) -> None:
        """Disconnect."""
        await self._connection.close()


class _Shoots:
    """Shoots of one round, and what happens to them; what is needed for a step is read before it."""

    def __init__(self, store: RedisStore, prefix: str, count: int) -> None:
        self._store = store
        self._documents = [shoot(name, number, "uniform") for number, name in enumerate(names(prefix, count))]
        self._keys = [
            ObjectKey("shoot", each["metadata"]["namespace"], each["metadata"]["name"]) for each in self._documents
        ]

    async def stored(self) -> list[StoredObject]:
        """They as they stand."""
        return [found for found in await self._store.get_many(self._keys) if found is not None]

    async def carry_out(self, step: str, stored: Sequence[StoredObject]) -> None:
        """One step for all of them."""
        await {"create": self._create, "bind": self._bind, "report": self._report, "delete": self._delete}[step](stored)

    async def _create(self, _: Sequence[StoredObject]) -> None:
        for start in range(0, len(self._documents), TOGETHER):
            await self._store.create_many([Creation(each) for each in self._documents[start : start + TOGETHER]])

    async def _bind(self, stored: Sequence[StoredObject]) -> None:
        bindings = [
            SeedBinding(each.key.namespace, each.key.name, each.uid, each.generation, seed_name(number % SEEDS), None)
            for number, each in enumerate(stored)
        ]
        for start in range(0, len(bindings), TOGETHER):
            outcomes = (await self._store.bind(bindings[start : start + TOGETHER], None)).outcomes
            if {*outcomes} != {"bound"}:
                raise BenchFailed(f"not all shoots were bound: {sorted({*outcomes})}")

    async def _report(self, stored: Sequence[StoredObject]) -> None:
        status = {"lastOperation": {"type": "Create", "state": "Processing", "progress": 10}}
        for each in stored:
            await self._store.update(each, each.document() | {"status": status})

    async def _delete(self, stored: Sequence[StoredObject]) -> None:
        for each in stored:
            await self._store.delete(each)


async def measured(shoots: int, rounds: int) -> dict[str, StepCosts]:
    """Cost of each step, in rounds of the one and the other."""
    spent: dict[str, dict[str, list[float]]] = {step: {"counted": [], "uncounted": []} for step in STEPS}
    async with a_rig(Durability.PROCESS) as rig:
        landscapes = {
            "counted": _Landscape(rig, "counted", LIBRARY),
            "uncounted": _Landscape(rig, "uncounted", library_without_counts()),
        }
        for landscape in landscapes.values():
            await landscape.open()
        for number in range(rounds):
            for name, landscape in list(landscapes.items())[:: 1 if number % 2 else -1]:
                written = _Shoots(landscape.store, f"round{number}", shoots)
                for step in STEPS:
                    stored = await written.stored()
                    before = await landscape.spent()
                    await written.carry_out(step, stored)
                    spent[step][name].append(1e6 * (await landscape.spent() - before) / shoots)
                    await landscape.emptied()
        for landscape in landscapes.values():
            await landscape.close()
    return {step: StepCosts(each["counted"], each["uncounted"]) for step, each in spent.items()}


def line(step: str, costs: StepCosts) -> str:
    """One step in words: the least that was taken with and without, the ratio of these, and the median ratio of rounds.

    Other work on the machine only ever adds to what Redis takes, by its caches, so that the least says the most.
    """
    ratio = statistics.median(counted / uncounted for counted, uncounted in zip(*costs, strict=True))
    counted, uncounted = map(min, costs)
    return (
        f"{step:8} {counted:7.1f} µs with, {uncounted:7.1f} µs without, ratio {counted / uncounted:.3f} "
        f"(median of the rounds: {ratio:.3f})\n"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the sizes, measure, print a line a step."""
    parser = argparse.ArgumentParser(prog="gardenbus.bench.state_counts", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shoots", type=int, default=BULK)
    parser.add_argument("--rounds", type=int, default=5)
    read = parser.parse_args(arguments)
    for step, costs in asyncio.run(measured(read.shoots, read.rounds)).items():
        sys.stdout.write(line(step, costs))


if __name__ == "__main__":
    main()
