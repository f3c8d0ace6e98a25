"""The store's functions: called as Redis Functions (FCALL), against the same text as a script (EVALSHA).

A script has no memory between calls, and its whole text runs with each of them; so it is told by its last lines that
the store is open, which a function remembers by itself.
"""

import itertools
from collections.abc import Sequence

from gardenbus.cli.bench.alternatives.shoots import documents, open_store
from gardenbus.cli.bench.alternatives.spending import Means, Row, Size, Spent, alternate, compared, spent
from gardenbus.cli.bench.manifests import basics, seed, seed_name
from gardenbus.cli.bench.rig import BenchFailed, Rig
from gardenbus.common.adapters.redis_connection import RedisConnection
from gardenbus.common.adapters.redis_functions import LIBRARY
from gardenbus.common.adapters.redis_line import Command
from gardenbus.common.adapters.redis_store import RedisStore
from gardenbus.common.ports.store import Binding, Creation
from gardenbus.common.resources.document import Document, StoredObject

CALLS = 10
IN_A_CALL = 100
SEEDS = 50
SCRIPTED = ("put_many", "bind")
OURS, OTHER = "FCALL", "EVALSHA of the same text"

_BEFORE = """
local registered = {}
local redis = setmetatable({
  register_function = function(made) registered[made.function_name] = made.callback end
}, {__index = redis})
"""
_AFTER = """
remember('0 ' .. KEYS[1], redis.call('GET', KEYS[1] .. ':opening'))
return registered['%s'](KEYS, ARGV)
"""

_prefixes = (f"scripted{number}" for number in itertools.count())


class ScriptedConnection(RedisConnection):
    """Calls scripts where others call functions."""

    def __init__(self, url: str, prefix: str) -> None:
        super().__init__(url, prefix)
        self._digests: dict[str, bytes] = {}

    async def load(self) -> None:
        """Load a script for each function."""
        text = LIBRARY.source.partition("\n")[2]  # the first line names a library
        for name in SCRIPTED:
            script = _BEFORE + text + _AFTER % LIBRARY.function(name)
            self._digests[name] = await self.command("SCRIPT", "LOAD", script)

    def _function(self, command: str, function: str, *operations: bytes) -> Command:
        if function not in self._digests:
            return super()._function(command, function, *operations)
        return ("EVALSHA", self._digests[function], 1, self.prefix, *operations)


async def scripts(rig: Rig, size: Size, durability: str) -> list[Row]:
    """Shoots put and bound, by both."""
    await rig.redis.ensure_library()
    await open_store(rig)
    for document in (*basics("uniform"), *(seed(number, "uniform") for number in range(SEEDS))):
        await rig.store.create(document)
    scripted = ScriptedConnection(rig.addresses.redis_url, rig.addresses.prefix)
    try:
        await scripted.load()
        stores = {OURS: rig.store, OTHER: RedisStore(scripted, rig.clock, reporter="bench")}
        calls = size.of(CALLS)
        put = await alternate(size, {name: _putting(rig, store, calls) for name, store in stores.items()})
        bound = await alternate(size, {name: _binding(rig, store, calls) for name, store in stores.items()})
    finally:
        await scripted.close()
    return [
        compared(f"{what} ({durability})", taken, ours=OURS, other=OTHER, unit="shoots", kept="functions")
        for what, taken in ((f"put, {IN_A_CALL} at once", put), (f"bind, {IN_A_CALL} a call", bound))
    ]


def _putting(rig: Rig, store: RedisStore, calls: int) -> Means:
    async def measured() -> Spent:
        created = [_creations(documents(next(_prefixes), IN_A_CALL)) for _ in range(calls)]

        async def put() -> None:
            for creations in created:
                await _stored(store, creations)

        result = await spent(rig, ["redis"], calls * IN_A_CALL, put)
        await _forget_news(rig)
        return result

    return measured


def _binding(rig: Rig, store: RedisStore, calls: int) -> Means:
    async def measured() -> Spent:
        stored = [await _stored(rig.store, _creations(documents(next(_prefixes), IN_A_CALL))) for _ in range(calls)]
        wanted = [_bindings(shoots) for shoots in stored]

        async def bind() -> None:
            for bindings in wanted:
                reply = await store.bind(bindings)
                if set(reply.outcomes) != {"bound"}:
                    raise BenchFailed(f"shoots were not bound: {set(reply.outcomes)}")

        result = await spent(rig, ["redis"], calls * IN_A_CALL, bind)
        await _forget_news(rig)
        return result

    return measured


def _creations(shoots: Sequence[Document]) -> list[Creation]:
    return [Creation(document) for document in shoots]


async def _stored(store: RedisStore, creations: Sequence[Creation]) -> list[StoredObject]:
    stored = [each for each in await store.create_many(creations) if isinstance(each, StoredObject)]
    if len(stored) != len(creations):
        raise BenchFailed("shoots were not stored")
    return stored


def _bindings(shoots: Sequence[StoredObject]) -> list[Binding]:
    return [
        Binding(each.key.namespace, each.key.name, each.uid, each.generation, seed_name(number % SEEDS), gate=None)
        for number, each in enumerate(shoots)
    ]


async def _forget_news(rig: Rig) -> None:
    """Nobody announces here: the outbox would fill up."""
    await rig.redis.command("XTRIM", rig.redis.key("outbox"), "MAXLEN", 0)
