"""Puts an apiserver together: intakes, the answering service, garbage collection, merged profiles."""

from collections.abc import Sequence
from typing import NamedTuple

from gardenbus.apiserver.reconcilers.api import Api
from gardenbus.apiserver.reconcilers.garbage import CONTROLLER, Garbage, later_on
from gardenbus.apiserver.reconcilers.intake import Handle, Intake
from gardenbus.apiserver.reconcilers.profiles import Profiles
from gardenbus.apiserver.reconcilers.reads import Library
from gardenbus.apiserver.reconcilers.rejecting import Rejections
from gardenbus.apiserver.reconcilers.reports import Reports
from gardenbus.apiserver.reconcilers.requests import Requests
from gardenbus.apiserver.reconcilers.speaking import api_filters, reports_filter
from gardenbus.apiserver.reconcilers.writing import Writer
from gardenbus.apiserver.settings import ApiserverSettings
from gardenbus.common.machinery.informer import Informer
from gardenbus.common.ports.bus import Bus, WorkQueue
from gardenbus.common.ports.store import Store
from gardenbus.common.resources.keys import Subjects
from gardenbus.common.runtime.connections import connect_all
from gardenbus.common.runtime.service import ServiceContext

CONSUMER = "apiserver"
"""The durable consumer on REQUESTS and REPORTS, shared by all replicas."""

VERSION = "1.0.0"

GARBAGE_BATCH = 20


class _Source(NamedTuple):
    """A durable queue and who handles it."""

    name: str
    queue: WorkQueue
    handle: Handle
    batch: int


async def build(context: ServiceContext[ApiserverSettings]) -> None:
    """Connect to the servers, as soon as they are there, and start."""
    connections = await connect_all(context, reporter="apiserver")
    await start_apiserver(context, store=connections.store, bus=connections.bus, subjects=connections.subjects)


async def start_apiserver(
    context: ServiceContext[ApiserverSettings], *, store: Store, bus: Bus, subjects: Subjects
) -> None:
    """Start everything on the context's tasks; returns once requests are taken."""
    settings, clock = context.settings, context.clock
    library, writer = Library(store), Writer(store, clock)
    rejections = Rejections(bus, store, subjects)
    requests_queue = await bus.work_queue(subjects.stream("REQUESTS"), CONSUMER, ">")
    requests = Requests(
        bus=bus,
        clock=clock,
        store=store,
        subjects=subjects,
        queue=requests_queue,
        writer=writer,
        library=library,
        rejections=rejections,
        consumer=CONSUMER,
        concurrency=settings.write_concurrency,
    )
    reports_queue = await bus.work_queue(subjects.stream("REPORTS"), CONSUMER, reports_filter(subjects))
    reports = Reports(
        bus=bus,
        store=store,
        subjects=subjects,
        queue=reports_queue,
        writer=writer,
        library=library,
        rejections=rejections,
        concurrency=settings.write_concurrency,
    )
    garbage_queue = await bus.work_queue(subjects.stream("QUEUES"), CONTROLLER, subjects.queue_of(CONTROLLER))
    garbage = Garbage(store, garbage_queue, later_on(bus, subjects))
    for refresh in (requests.refresh, reports.refresh):
        await context.wait_for("nats", refresh)
        bus.on_reconnect(refresh)
    profiles = Profiles(store, clock)
    informer = Informer(store, bus, subjects, profiles.KINDS)
    informer.subscribe(profiles.changed)
    context.stack.push_async_callback(informer.stop)
    context.spawn("profiles", profiles.run(informer.start))
    _start_intakes(
        context,
        rejections,
        [
            _Source("requests", requests_queue, requests.handle, settings.request_batch),
            _Source("reports", reports_queue, reports.handle, settings.report_batch),
            _Source("garbage", garbage_queue, garbage.handle, GARBAGE_BATCH),
        ],
    )
    api = Api(
        bus=bus,
        store=store,
        subjects=subjects,
        writer=writer,
        library=library,
        concurrency=settings.answer_concurrency,
    )
    await bus.serve("apiserver", VERSION, dict.fromkeys(api_filters(subjects), api.handle))


def _start_intakes(
    context: ServiceContext[ApiserverSettings], rejections: Rejections, sources: Sequence[_Source]
) -> None:
    settings = context.settings
    for source in sources:
        intake = Intake(source.name, source.queue, source.handle, rejections, context.clock, batch=source.batch)
        context.spawn(
            source.name,
            intake.run(deliveries_max=settings.deliveries_max, wait_seconds=settings.fetch_wait_seconds),
        )
        context.on_stop(source.name, intake.stop)
