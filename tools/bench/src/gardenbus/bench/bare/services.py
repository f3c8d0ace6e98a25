"""The bare pipe: what the services do with servers, in the same batches and by the same functions, deciding nothing.

`python -m gardenbus.bench.bare.services schedule|intake|listen`, as a process of its own in the service's place:

| role     | in the place of | does                                                                               |
|----------|-----------------|------------------------------------------------------------------------------------|
| schedule | scheduler       | fetch → bind to the next seed in turn → acknowledge. Without the file of uids it    |
|          |                 | reads the shoots first, as the scheduler does                                       |
| intake   | apiserver       | fetch → put as it is → acknowledge                                                  |
| listen   | lifecycle       | follow the Leases, count them                                                       |

The next batch is fetched while one is carried out.
"""

import asyncio
import itertools
import os
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from gardenbus.apiserver.app import CONSUMER as REQUESTS_CONSUMER
from gardenbus.apiserver.settings import ApiserverSettings
from gardenbus.bench.manifests.shoots import seed_name
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import SettingsInvalid
from gardenbus.common.ports.bus import QueueMessage, StreamMessage, WorkQueue
from gardenbus.common.ports.store import RequestOrigin, SeedBinding, Store
from gardenbus.common.runtime.connections import ServerConnections, connect_all
from gardenbus.common.runtime.service import ServiceContext, run_service
from gardenbus.common.runtime.settings import CommonSettings, load
from gardenbus.scheduler.controllers.shoots import CALL_SIZE
from gardenbus.scheduler.settings import SchedulerSettings

SEEDS_VARIABLE = "GARDENBUS_BENCH_SEEDS"
UIDS_VARIABLE = "GARDENBUS_BENCH_UIDS"
"""A file of JSON: shoot name to uid and groups."""

SCHEDULING_CONSUMER = "scheduling-default-scheduler"
WAIT_SECONDS = 1.0


class _Described(NamedTuple):
    """A shoot that is bound: its uid, and the groups that it is a member of."""

    uid: str
    groups: Sequence[str]


_decode = msgspec.json.Decoder(Document).decode


async def build_schedule(context: ServiceContext[CommonSettings]) -> None:
    """Take work, bind each to the next seed in turn, acknowledge."""
    connections = await connect_all(context, reporter="bare")
    shoots: dict[str, _Described] = {}
    if file_name := os.environ.get(UIDS_VARIABLE):
        with open(file_name, "rb") as file:  # noqa: ASYNC230, PTH123 - before anything runs
            shoots = msgspec.json.decode(file.read(), type=dict[str, _Described])
    queue = await _queue(connections, "QUEUES", SCHEDULING_CONSUMER, "queue.scheduling.default-scheduler.*.*")
    seeds = itertools.cycle(seed_name(number) for number in range(int(os.environ[SEEDS_VARIABLE])))
    context.spawn("schedule", _Schedule(connections.store, queue, seeds, shoots).run())


async def _pipelined(
    queue: WorkQueue, batch: int, carry_out: Callable[[Sequence[QueueMessage]], Coroutine[Any, Any, None]]
) -> None:
    """Carry out batch after batch; the next one is fetched meanwhile, so that servers need not wait."""
    before: asyncio.Task[None] | None = None
    while True:
        works = await queue.fetch(batch, WAIT_SECONDS)
        if before is not None:
            await before
        before = asyncio.create_task(carry_out(works)) if works else None


class _Schedule:
    """Binds what comes."""

    def __init__(self, store: Store, queue: WorkQueue, seeds: Iterator[str], shoots: Mapping[str, _Described]) -> None:
        self._store = store
        self._queue = queue
        self._seeds = seeds
        self._shoots = shoots
        self._since = 0

    async def run(self) -> None:
        await _pipelined(self._queue, SchedulerSettings().batch_size, self._bind)

    async def _bind(self, works: Sequence[QueueMessage]) -> None:
        if self._shoots:  # what else is queued is not its business, and comes again
            works = [work for work in works if _key_of(work).name in self._shoots]
        keys = [_key_of(work) for work in works]
        shoots = [self._shoots[key.name] for key in keys] if self._shoots else await self._read(keys)
        groups = await self._groups(keys, shoots)
        bindings = [
            SeedBinding(
                key.namespace,
                key.name,
                shoot.uid,
                generation=1,
                seed=next(self._seeds),
                scheduling_generation=None,
                groups={group: (groups[group].version, groups[group].placed()) for group in shoot.groups},
            )
            for key, shoot in zip(keys, shoots, strict=True)
        ]
        while bindings:
            bindings = [msgspec.structs.replace(each, seed=next(self._seeds)) for each in await self._full(bindings)]
        await self._queue.ack_many(works)

    async def _full(self, bindings: Sequence[SeedBinding]) -> list[SeedBinding]:
        """Bind; returns those whose seed was full."""
        chunks = [bindings[start : start + CALL_SIZE] for start in range(0, len(bindings), CALL_SIZE)]
        replies = await asyncio.gather(*(self._store.bind(chunk, self._since) for chunk in chunks))
        self._since = max([self._since, *(reply.usage.version for reply in replies)])
        outcomes = [outcome for reply in replies for outcome in reply.outcomes]
        if not {"bound", "full"}.issuperset(outcomes):
            raise SettingsInvalid((f"the bare pipe could not bind: {set(outcomes)}",))
        return [each for each, outcome in zip(bindings, outcomes, strict=True) if outcome == "full"]

    async def _groups(self, keys: Sequence[ObjectKey], shoots: Sequence[_Described]) -> Mapping[str, "_Group"]:
        """The groups of shoots of one namespace, read once."""
        names = sorted({group for shoot in shoots for group in shoot.groups})
        if not names:
            return {}
        counts = await self._store.group_counts(keys[0].namespace, names)
        return {name: _Group(each.version) for name, each in counts.items()}

    async def _read(self, keys: Sequence[ObjectKey]) -> list[_Described]:
        return [_Described(stored.uid if stored else "", []) for stored in await self._store.get_many(keys)]


class _Group:
    """A group at the version that was read, with the members placed since."""

    def __init__(self, version: int) -> None:
        self.version = version
        self._next = itertools.count()

    def placed(self) -> int:
        """The number of members that were placed before one more."""
        return next(self._next)


def _key_of(work: QueueMessage) -> ObjectKey:
    namespace, name = work.message.subject.rsplit(".", 2)[1:]
    return ObjectKey("shoot", namespace, name)


async def build_apply(context: ServiceContext[CommonSettings]) -> None:
    """Take requests, store what they hold as it is, acknowledge."""
    connections = await connect_all(context, reporter="bare")
    queue = await _queue(connections, "REQUESTS", REQUESTS_CONSUMER, None)
    created = (await connections.bus.position(connections.subjects.stream("REQUESTS"))).created
    context.spawn("intake", _apply(connections.store, queue, created))


async def _apply(store: Store, queue: WorkQueue, created: int) -> None:
    settings = ApiserverSettings()
    slots = asyncio.Semaphore(settings.write_concurrency)

    async def put(work: QueueMessage) -> None:
        body, origin = work.message.body, RequestOrigin(created, work.message.sequence)
        async with slots:
            await store.create(_decode(body), origin=origin, last_applied=body)

    async def put_all(works: Sequence[QueueMessage]) -> None:
        await asyncio.gather(*(put(work) for work in works))
        await queue.ack_many(works)

    await _pipelined(queue, settings.request_batch, put_all)


async def build_listen(context: ServiceContext[CommonSettings]) -> None:
    """Follow the Leases and do nothing about them."""
    connections = await connect_all(context, reporter="bare")
    context.spawn("listen", _listen(connections))


async def _listen(connections: ServerConnections) -> None:
    subjects, received = connections.subjects, 0
    async with connections.bus.follow(
        subjects.stream("LEASES"), [subjects.lease("*")], last_per_subject=True
    ) as follower:
        async for event in follower:
            received += isinstance(event, StreamMessage)


async def _queue(connections: ServerConnections, stream: str, consumer: str, tail: str | None) -> WorkQueue:
    subjects = connections.subjects
    return await connections.bus.work_queue(
        subjects.stream(stream), consumer, f"{subjects.prefix}.{tail}" if tail else ">"
    )


if __name__ == "__main__":
    builds = {"schedule": build_schedule, "intake": build_apply, "listen": build_listen}
    run_service(f"bare-{sys.argv[1]}", lambda: load(CommonSettings), builds[sys.argv[1]])
