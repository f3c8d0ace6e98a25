"""Wires an apiserver: batch consumers, the API service, controllers."""

from pathlib import Path
from typing import NamedTuple

from gardenbus.apiserver.access.audit_log import AuditLog
from gardenbus.apiserver.access.authorizer import Authorizer
from gardenbus.apiserver.access.static_users import StaticUsers
from gardenbus.apiserver.controllers.garbage_collector import CONTROLLER, GarbageCollector
from gardenbus.apiserver.controllers.informer_controller import InformerController
from gardenbus.apiserver.controllers.namespaced_cloud_profiles import NamespacedCloudProfiles
from gardenbus.apiserver.controllers.use_as_seed import UseAsSeed
from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.plugins.table import enabled_plugins
from gardenbus.apiserver.domain.request_subjects import api_filters, reported_object, reports_filter
from gardenbus.apiserver.domain.senders import UserOf, as_stated
from gardenbus.apiserver.isolated_process import IsolatedProcess, isolated_process
from gardenbus.apiserver.messages.durable_requests import DurableRequestHandler
from gardenbus.apiserver.messages.reports import ReportHandler
from gardenbus.apiserver.metrics import ConsumerMetrics, request_counts
from gardenbus.apiserver.registry.read_cache import ManifestCache
from gardenbus.apiserver.registry.seed_binder import SeedBinder
from gardenbus.apiserver.registry.stored_amounts import StoredAmounts
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.apiserver.requests.api import ApiHandler
from gardenbus.apiserver.requests.own_consumers import OwnConsumers
from gardenbus.apiserver.settings import ApiserverSettings
from gardenbus.common.api.identity.accounts import AUTH_CALLOUT, COMES_IN_BY
from gardenbus.common.api.kinds import register_groups
from gardenbus.common.controller.batch_consumer import BatchConsumer, BatchSettings
from gardenbus.common.controller.budget_settings import BudgetSettings
from gardenbus.common.controller.dead_letter import DeadLetter
from gardenbus.common.controller.informer import Informer
from gardenbus.common.controller.isolation import Isolation
from gardenbus.common.controller.process_counts import CountReporter
from gardenbus.common.controller.scheduling_hints import HintSender
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import WorkQueue
from gardenbus.common.ports.connections import Connections
from gardenbus.common.ports.store import Store
from gardenbus.common.runtime.connections import connect_all
from gardenbus.common.runtime.controllers import start_controller
from gardenbus.common.runtime.isolated_service import NotingQueue
from gardenbus.common.runtime.service import ServiceContext

CONSUMER = "apiserver"
"""The durable consumer on REQUESTS and REPORTS, shared by all replicas."""

VERSION = "1.0.0"

REPORTER = "apiserver"


async def build(context: ServiceContext[ApiserverSettings]) -> None:
    """Connect to the servers, as soon as they are there, and start."""
    await start_apiserver(context, await connect_all(context, reporter=REPORTER), isolated_process(context))


class _Parts(NamedTuple):
    """Parts that the handlers and controllers of one apiserver share."""

    connections: Connections
    writer: Writer
    manifests: ManifestCache
    authorizer: Authorizer
    user_of: UserOf
    budgets: BudgetSettings


async def start_apiserver(
    context: ServiceContext[ApiserverSettings], connections: Connections, isolated: IsolatedProcess | None = None
) -> None:
    """Start everything on the context's tasks; returns once requests are consumed.

    `isolated` handles messages that may have killed a process; without it they are rejected by their deliveries.
    """
    store, bus = connections.store, connections.bus
    register_groups(filter(None, context.settings.groups.split(",")))
    manifests = ManifestCache(store)
    writer = Writer(store, context.clock, Admission(enabled_plugins(context.settings.configuration)))
    if context.settings.takes("hints"):
        writer.on_created = HintSender(bus, connections.subjects).created
    audit = AuditLog(context.clock)
    context.stack.callback(audit.close)
    budgets = BudgetSettings()
    enforces = context.settings.enforces_authorization
    authorizer = Authorizer(store, audit, is_enforced=enforces, budget_within=budgets.within)
    static = context.settings.static_users
    user_of = StaticUsers(Path(static)).user_of if static else as_stated
    parts = _Parts(connections, writer, manifests, authorizer, user_of, budgets)
    requests, reports = await _handlers(context, parts)
    for refresh in (requests.reader.refresh, reports.refresh):
        await context.wait_for("nats", refresh)
        bus.on_reconnect(refresh)
    if context.isolated is not None:
        handlers = {"requests": requests.handle, "reports": reports.handle}
        context.spawn("isolated", context.isolated.serve(handlers))
        return
    await _start_controllers(context, parts)
    _start_consumer(context, "requests", requests, context.settings.request_batch, isolated)
    _start_consumer(context, "reports", reports, context.settings.report_batch, isolated)
    await _serve_api(context, parts)
    context.health.add_readiness("store", lambda: _problem_of_reading(connections.store))


async def _handlers(
    context: ServiceContext[ApiserverSettings], parts: _Parts
) -> tuple[DurableRequestHandler, ReportHandler]:
    """The handlers of durable requests and of reports, on their queues."""
    connections, writer, manifests, authorizer, user_of = parts[:5]
    store, bus, subjects = connections.store, connections.bus, connections.subjects
    dead_letter = DeadLetter(connections, reporter=REPORTER, object_of=reported_object(subjects))

    async def opened(stream: str, consumer: str, subject: str) -> WorkQueue:
        if context.isolated is not None:
            return NotingQueue()
        name, size = subjects.stream(stream), context.settings.batch_bytes
        return await context.wait_for("nats", lambda: bus.work_queue(name, consumer, subject, fetch_bytes=size))

    requests = DurableRequestHandler(
        bus=bus,
        clock=context.clock,
        store=store,
        subjects=subjects,
        queue=await opened("REQUESTS", CONSUMER, ">"),
        writer=writer,
        manifests=manifests,
        dead_letter=dead_letter,
        authorizer=authorizer,
        consumer=CONSUMER,
        concurrency=context.settings.write_concurrency,
        user_of=user_of,
    )
    reports = ReportHandler(
        bus=bus,
        store=store,
        subjects=subjects,
        queue=await opened("REPORTS", CONSUMER, reports_filter(subjects)),
        writer=writer,
        manifests=manifests,
        dead_letter=dead_letter,
        concurrency=context.settings.write_concurrency,
        user_of=user_of,
    )
    return requests, reports


async def _problem_of_reading(store: Store) -> str | None:
    """Reason for which the store serves no request; None when it does."""
    try:
        await store.exists_uid("")
    except Unavailable as error:
        return error.message
    return None


async def _serve_api(context: ServiceContext[ApiserverSettings], parts: _Parts) -> None:
    connections, writer, manifests, authorizer, user_of, budgets = parts
    store, bus, subjects = connections.store, connections.bus, connections.subjects
    api = ApiHandler(
        bus=bus,
        store=store,
        clock=context.clock,
        subjects=subjects,
        writer=writer,
        seed_binder=SeedBinder(store, context.clock, writer.admission),
        manifests=manifests,
        authorizer=authorizer,
        concurrency=context.settings.answer_concurrency,
        user_of=user_of,
        budget_of=budgets.of,
    )
    stored = StoredAmounts(store, budgets, api.use)
    context.spawn("stored-amounts", stored.run(context.clock.sleep))
    bus.report_stats(api.use.report)
    about = {"takes": "JSON or YAML", "answers": "JSON", "described-in": "docs/reference/asyncapi.yaml"}
    if context.settings.nats_credentials and not context.settings.static_users:
        about[COMES_IN_BY] = AUTH_CALLOUT
    counts = CountReporter(bus, subjects, f"apiserver-{context.instance}", request_counts)
    context.spawn("counts", counts.run(context.clock))
    handlers = {
        **dict.fromkeys(api_filters(subjects), api.handle),
        subjects.consumer(">"): OwnConsumers(bus, subjects).handle,
    }
    await context.wait_for("nats", lambda: bus.serve("apiserver", VERSION, handlers, metadata=about))


async def _start_controllers(context: ServiceContext[ApiserverSettings], parts: _Parts) -> None:
    connections, writer, manifests, authorizer = parts[:4]
    store, bus, subjects = connections.store, connections.bus, connections.subjects
    use_as_seed = UseAsSeed(store, context.clock, writer, manifests)
    writer.add_follow_up(use_as_seed.follow_up)
    controllers: dict[str, InformerController] = {
        "profiles": NamespacedCloudProfiles(store, context.clock),
        "use-as-seed": use_as_seed,
    }
    for name, controller in controllers.items():
        informer = Informer(store, bus, subjects, controller.KINDS, controller.NAMESPACES)
        informer.subscribe(controller.on_change)
        context.stack.push_async_callback(informer.stop)
        context.spawn(name, controller.run(informer.start))
    settings = Informer(store, bus, subjects, BudgetSettings.KINDS, BudgetSettings.NAMESPACES)
    settings.subscribe(parts.budgets.on_change)
    context.stack.push_async_callback(settings.stop)
    context.spawn("budgets", settings.start())
    await start_controller(
        context,
        CONTROLLER,
        GarbageCollector(store, writer.admission, authorizer, manifests, writer.agent_credentials).reconcile,
        connections,
        reporter=REPORTER,
        event_reason="",
    )


def _start_consumer(
    context: ServiceContext[ApiserverSettings],
    name: str,
    handler: DurableRequestHandler | ReportHandler,
    batch: int,
    isolated: IsolatedProcess | None,
) -> None:
    settings = context.settings
    consumer = BatchConsumer(
        name,
        handler.queue,
        handler.handle,
        reject=handler.dead_letter.reject_poison,
        clock=context.clock,
        settings=BatchSettings(
            batch=batch,
            wait_seconds=settings.fetch_wait_seconds,
            max_deliveries=settings.deliveries_max,
            fetches_ahead=settings.takes("fetching-ahead"),
        ),
        observer=ConsumerMetrics(name),
        isolation=Isolation(isolated.handle, handler.dead_letter.reject_deadly) if isolated is not None else None,
    )
    context.spawn(name, consumer.run())
    context.on_stop(name, consumer.stop)
