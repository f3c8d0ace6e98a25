"""The bare pipe: what the services do with servers, in the same batches and by the same functions, deciding nothing.

`python -m gardenbus.cli.bench.bare schedule|intake`, as a process of its own in the service's place.
"""

import asyncio
import itertools
import os
import sys
from collections.abc import Sequence

import msgspec

from gardenbus.apiserver.settings import ApiserverSettings
from gardenbus.common.errors import SettingsInvalid
from gardenbus.common.ports.bus import Work, WorkQueue
from gardenbus.common.ports.store import Binding, Store
from gardenbus.common.resources.document import Document
from gardenbus.common.runtime.connections import Connections, connect_all
from gardenbus.common.runtime.service import ServiceContext, run_service
from gardenbus.common.runtime.settings import CommonSettings, load
from gardenbus.scheduler.reconcilers.shoots import CALL_SIZE
from gardenbus.scheduler.settings import SchedulerSettings

SEEDS_VARIABLE = "GARDENBUS_BENCH_SEEDS"
UIDS_VARIABLE = "GARDENBUS_BENCH_UIDS"
"""A file of JSON: shoot name to uid. The scheduler reads shoots from the store; here they are known."""

SCHEDULING_CONSUMER = "scheduling-default-scheduler"
REQUESTS_CONSUMER = "apiserver"
WAIT_SECONDS = 1.0

_decode = msgspec.json.Decoder(Document).decode


async def build_schedule(context: ServiceContext[CommonSettings]) -> None:
    """Take work, bind each to the next seed in turn, acknowledge."""
    connections = await connect_all(context, reporter="bare")
    with open(os.environ[UIDS_VARIABLE], "rb") as file:  # noqa: ASYNC230, PTH123 - before anything runs
        uids = msgspec.json.decode(file.read(), type=dict[str, str])
    queue = await _queue(connections, "QUEUES", SCHEDULING_CONSUMER, "queue.scheduling.default-scheduler.>")
    seeds = itertools.cycle(f"seed-{number:05}" for number in range(int(os.environ[SEEDS_VARIABLE])))
    context.spawn("schedule", _schedule(connections.store, queue, seeds, uids))


async def _schedule(store: Store, queue: WorkQueue, seeds: "itertools.cycle[str]", uids: dict[str, str]) -> None:
    batch = SchedulerSettings().batch_size
    since = 0
    while True:
        works = await queue.fetch(batch, WAIT_SECONDS)
        bindings = [_binding(work, next(seeds), uids) for work in works]
        chunks = [bindings[start : start + CALL_SIZE] for start in range(0, len(bindings), CALL_SIZE)]
        replies = await asyncio.gather(*(store.bind(chunk, since) for chunk in chunks))
        for reply in replies:
            since = max(since, reply.usage.version)
            if any(outcome != "bound" for outcome in reply.outcomes):
                raise SettingsInvalid((f"the bare pipe could not bind: {set(reply.outcomes)}",))
        await queue.ack_many(works)


def _binding(work: Work, seed: str, uids: dict[str, str]) -> Binding:
    namespace, name = work.message.subject.rsplit(".", 2)[1:]
    return Binding(namespace=namespace, name=name, uid=uids[name], generation=1, seed=seed, gate=None)


async def build_intake(context: ServiceContext[CommonSettings]) -> None:
    """Take requests, store what they hold as it is, acknowledge."""
    connections = await connect_all(context, reporter="bare")
    queue = await _queue(connections, "REQUESTS", REQUESTS_CONSUMER, None)
    context.spawn("intake", _intake(connections.store, queue))


async def _intake(store: Store, queue: WorkQueue) -> None:
    settings = ApiserverSettings()
    slots = asyncio.Semaphore(settings.write_concurrency)

    async def put(work: Work) -> None:
        async with slots:
            await store.create(_decode(work.message.body))

    while True:
        works: Sequence[Work] = await queue.fetch(settings.request_batch, WAIT_SECONDS)
        await asyncio.gather(*(put(work) for work in works))
        await queue.ack_many(works)


async def _queue(connections: Connections, stream: str, consumer: str, tail: str | None) -> WorkQueue:
    subjects = connections.subjects
    return await connections.bus.work_queue(
        subjects.stream(stream), consumer, f"{subjects.prefix}.{tail}" if tail else ">"
    )


if __name__ == "__main__":
    builds = {"schedule": build_schedule, "intake": build_intake}
    run_service(f"bare-{sys.argv[1]}", lambda: load(CommonSettings), builds[sys.argv[1]])
