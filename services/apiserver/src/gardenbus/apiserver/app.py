"""Puts an apiserver together: intakes, the answering service, garbage collection, merged profiles."""

from collections.abc import Sequence
from typing import NamedTuple

from gardenbus.apiserver.reconcilers.api import Api
from gardenbus.apiserver.reconcilers.garbage import CONTROLLER, Garbage
from gardenbus.apiserver.reconcilers.intake import Handle, Intake, KilledItsHandler, Prepare
from gardenbus.apiserver.reconcilers.placing import Placer
from gardenbus.apiserver.reconcilers.profiles import Profiles
from gardenbus.apiserver.reconcilers.reads import Library
from gardenbus.apiserver.reconcilers.rejecting import Rejections
from gardenbus.apiserver.reconcilers.reports import Reports
from gardenbus.apiserver.reconcilers.requests import Requests
from gardenbus.apiserver.reconcilers.speaking import api_filters, reports_filter
from gardenbus.apiserver.reconcilers.use_as_seed import UseAsSeed
from gardenbus.apiserver.reconcilers.writing import Writer
from gardenbus.apiserver.settings import ApiserverSettings
from gardenbus.common.machinery.controller import Controller, WorkRequest
from gardenbus.common.machinery.informer import Informer
from gardenbus.common.machinery.timers import Timers
from gardenbus.common.ports.bus import Bus, Delivered, WorkQueue
from gardenbus.common.ports.store import Store
from gardenbus.common.resources.keys import Subjects
from gardenbus.common.runtime.connections import connect_all
from gardenbus.common.runtime.service import ServiceContext

CONSUMER = "apiserver"
"""The durable consumer on REQUESTS and REPORTS, shared by all replicas."""

VERSION = "1.0.0"


class _Source(NamedTuple):
    """A durable queue and who handles it."""

    name: str
    queue: WorkQueue
    handle: Handle
    batch: int
    prepare: Prepare | None = None


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
    for refresh in (requests.refresh, reports.refresh):
        await context.wait_for("nats", refresh)
        bus.on_reconnect(refresh)
    profiles = Profiles(store, clock)
    informer = Informer(store, bus, subjects, profiles.KINDS)
    informer.subscribe(profiles.changed)
    context.stack.push_async_callback(informer.stop)
    context.spawn("profiles", profiles.run(informer.start))
    _start_use_as_seed(
        context,
        writer,
        UseAsSeed(store, clock, writer, library),
        Informer(store, bus, subjects, UseAsSeed.KINDS, UseAsSeed.NAMESPACES),
    )
    _start_intakes(
        context,
        rejections,
        [
            _Source("requests", requests_queue, requests.handle, settings.request_batch, requests.prepare),
            _Source("reports", reports_queue, reports.handle, settings.report_batch),
        ],
    )
    await _start_garbage_collection(context, store=store, bus=bus, subjects=subjects)
    api = Api(
        bus=bus,
        store=store,
        clock=clock,
        subjects=subjects,
        writer=writer,
        placer=Placer(store, clock),
        library=library,
        concurrency=settings.answer_concurrency,
    )
    about = {"takes": "JSON or YAML", "answers": "JSON", "described-in": "docs/reference/asyncapi.yaml"}
    await bus.serve("apiserver", VERSION, dict.fromkeys(api_filters(subjects), api.handle), metadata=about)


def _start_use_as_seed(
    context: ServiceContext[ApiserverSettings], writer: Writer, use_as_seed: UseAsSeed, informer: Informer
) -> None:
    writer.followed_by(use_as_seed.follow)
    informer.subscribe(use_as_seed.changed)
    context.stack.push_async_callback(informer.stop)
    context.spawn("use-as-seed", use_as_seed.run(informer.start))


async def _start_garbage_collection(
    context: ServiceContext[ApiserverSettings], *, store: Store, bus: Bus, subjects: Subjects
) -> None:
    rejections = Rejections(bus, store, subjects)

    async def rejected(request: WorkRequest, reason: str) -> None:
        message = Delivered(request.subject, b"", {}, 0, context.clock.now())
        await rejections.reject(message, KilledItsHandler(reason))

    controller = Controller(
        CONTROLLER,
        await bus.work_queue(subjects.stream("QUEUES"), CONTROLLER, subjects.queue_of(CONTROLLER)),
        Garbage(store).reconcile,
        timers=Timers(bus, subjects),
        clock=context.clock,
        rejected=rejected,
    )
    context.spawn(CONTROLLER, controller.run())
    context.on_stop(CONTROLLER, controller.stop)


def _start_intakes(
    context: ServiceContext[ApiserverSettings], rejections: Rejections, sources: Sequence[_Source]
) -> None:
    settings = context.settings
    for source in sources:
        intake = Intake(
            source.name,
            source.queue,
            source.handle,
            rejections,
            context.clock,
            batch=source.batch,
            prepare=source.prepare,
        )
        context.spawn(
            source.name,
            intake.run(deliveries_max=settings.deliveries_max, wait_seconds=settings.fetch_wait_seconds),
        )
        context.on_stop(source.name, intake.stop)
