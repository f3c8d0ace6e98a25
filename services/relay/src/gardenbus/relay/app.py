"""Composition root of the relay."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from importlib.metadata import version

from gardenbus.common.adapters.redis.backups import RedisBackups
from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.backups.creating import BackupSource
from gardenbus.common.backups.destinations import destination_of
from gardenbus.common.backups.requests import WaitingRequests
from gardenbus.common.backups.schedule import parse_window
from gardenbus.common.errors import BadRequest, SettingsInvalid
from gardenbus.common.runtime.connections import ServerConnections, connect_all
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.diagnostics.replication import sentinel_facts
from gardenbus.relay import metrics
from gardenbus.relay.adapters.library_pruner import LibraryPruner
from gardenbus.relay.adapters.redis_outbox import RedisOutbox
from gardenbus.relay.adapters.redis_stats import outbox_times, replication_info, store_stats
from gardenbus.relay.backups import BackupKeeper, BackupPlan
from gardenbus.relay.relay import Relay, RelaySettings
from gardenbus.relay.replica_report import report_replicas
from gardenbus.relay.server_stats import export_server_stats, record_announced
from gardenbus.relay.settings import RelayServiceSettings
from gardenbus.relay.settled import SettledRequests


def _limits(settings: RelayServiceSettings) -> RelaySettings:
    return RelaySettings(
        lead_ttl_seconds=settings.relay_lead_ttl_seconds,
        lease_period=timedelta(seconds=settings.recovery_seconds),
        holds_pages=settings.takes("held-pages"),
        fetches_ahead=settings.takes("fetching-ahead"),
    )


async def build(context: ServiceContext[RelayServiceSettings]) -> None:
    """Connect and start announcing whenever nobody else does."""
    check_backup_settings(context.settings)
    connections = await connect_all(context, reporter="relay")
    outbox = RedisOutbox(connections.redis, context.clock, leader=context.instance)
    relay = Relay(
        outbox,
        connections.bus,
        connections.subjects,
        context.clock,
        _limits(context.settings),
    )
    relay.on_announced = lambda entries: record_announced(entries, context.clock.now().timestamp())
    metrics.LEADING.set_function(lambda: relay.leading)
    context.spawn(
        "observation",
        export_server_stats(
            lambda: store_stats(connections.redis),
            connections.bus.stats,
            context.clock,
            context.settings.observe_seconds,
        ),
    )
    reporting = report_replicas(
        lambda: _replication_facts(connections.redis),
        connections.bus.note,
        context.clock,
        context.settings.observe_seconds,
    )
    context.spawn("replicas", reporting)
    task = context.spawn("relay", relay.run())
    if context.settings.backup_destination:
        keeper = _backup_keeper(context, connections, outbox, lambda: relay.leading)
        context.spawn("backups", keeper.run())
    settled = SettledRequests(
        lambda: outbox_times(connections.redis),
        lambda: connections.bus.position(connections.subjects.stream("OBJECTS")),
        context.clock,
    )
    handlers = {connections.subjects.settled: settled.handle}
    context.spawn("settled", context.wait_for("nats", lambda: connections.bus.serve("relay", "1.0.0", handlers)))
    context.spawn("libraries", LibraryPruner(connections.redis, context.clock).run())

    async def resign() -> None:
        task.cancel()

    context.on_stop("relay", resign)


async def _replication_facts(redis: RedisConnection) -> Mapping[str, str]:
    return {**await replication_info(redis), **sentinel_facts(await redis.sentinels(), redis.other_servers)}


def _backup_keeper(
    context: ServiceContext[RelayServiceSettings],
    connections: ServerConnections,
    outbox: RedisOutbox,
    leads: Callable[[], bool],
) -> BackupKeeper:
    settings = context.settings
    requests = WaitingRequests(connections.bus, outbox, connections.subjects)
    source = BackupSource(RedisBackups(connections.redis), settings.prefix, version("gardenbus-common"), requests)
    plan = BackupPlan(
        parse_window(settings.backup_window),
        settings.backup_delta_seconds,
        settings.backup_delta_mebibytes * 2**20,
        settings.backup_collection_seconds,
    )
    destination = destination_of(settings.backup_destination, settings.stream_replicas)
    context.on_stop("backups", destination.close)
    return BackupKeeper(source, destination, context.clock, plan, leads)


def check_backup_settings(settings: RelayServiceSettings) -> None:
    """Raise SettingsInvalid where the destination or the window of backups cannot be read."""
    problems: list[str] = []
    try:
        parse_window(settings.backup_window)
    except ValueError as error:
        problems.append(f"GARDENBUS_BACKUP_WINDOW: {error}")
    try:
        if settings.backup_destination:
            destination_of(settings.backup_destination)
    except BadRequest as error:
        problems.append(f"GARDENBUS_BACKUP_DESTINATION: {error.message}")
    if problems:
        raise SettingsInvalid(tuple(problems))
