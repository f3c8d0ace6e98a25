"""`backup`: back the store up, look at backups, check them, and restore one into an empty store."""

import asyncio
import contextlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from gardenbus.cli.client.api import CONNECT_SECONDS, connected, quiet_logs
from gardenbus.cli.client.store_address import connect_store, given_settings
from gardenbus.cli.client.targets import LandscapeTarget, credentials_of, find_landscape
from gardenbus.cli.commands.options import LandscapeOptions, Output
from gardenbus.cli.lazy import help_of, new_group
from gardenbus.cli.output.columns import age_of
from gardenbus.cli.output.console import (
    PROGRAMS,
    Exit,
    Format,
    counted,
    exit_codes,
    new_table,
    printed,
    show_document,
    show_lines,
    show_rows,
)
from gardenbus.common.adapters.addresses import without_user
from gardenbus.common.api.document import section
from gardenbus.common.api.keys import Subjects
from gardenbus.common.backups.catalog import Backup, Catalog, Chain
from gardenbus.common.backups.creating import BackupSource, Created, create_delta, create_full, latest_of, read_catalog
from gardenbus.common.backups.destinations import destination_of
from gardenbus.common.backups.requests import WaitingRequests
from gardenbus.common.backups.restoring import Checked, RestoredChain, chosen_chain, restore, verify
from gardenbus.common.errors import BadRequest, Conflict, NotFound, Unavailable
from gardenbus.common.ports.backups import BackupDestination
from gardenbus.common.ports.bus import Bus
from gardenbus.common.runtime import event_loop

if TYPE_CHECKING:
    from gardenbus.common.adapters.redis.connection import RedisConnection

Destination = Annotated[
    str,
    typer.Option(
        "--destination",
        "-d",
        help="Where backups are kept: a directory, s3://BUCKET/folder, or nats://host:4222,…/BUCKET.",
        envvar="GARDENBUS_BACKUP_DESTINATION",
        metavar="PLACE",
    ),
]
RedisUrlOption = Annotated[str | None, typer.Option("--redis-url", help="Where Redis is (default: as for NATS).")]
Named = Annotated[str, typer.Argument(help="A backup's name (default: the latest).", metavar="[NAME]")]

READERS = frozenset({"gardenlet", "memberagent", "dashboard", "identity"})
"""Services that may go on while the store is restored: they do not write to it."""

backup = new_group("Back the store up, look at backups, check them, restore one.")


def create(
    *,
    destination: Destination = "",
    delta: Annotated[bool, typer.Option("--delta", help="Only what changed since the latest backup.")] = False,
    without_requests: Annotated[
        bool, typer.Option("--without-requests", help="Leave out the orders that wait on the bus: NATS may be away.")
    ] = False,
    redis_url: RedisUrlOption = None,
    landscape: LandscapeOptions,
) -> None:
    """Back the store up, as it is at one moment, and the orders that wait on the bus, while everything goes on.

    Backups hold Secrets: keep them where only operators read.

    Example: gardenbus backup create -d /var/backups/gardenbus
    """
    quiet_logs()
    with exit_codes():
        place = _opened(destination)
        where = find_landscape(*landscape)
        connection = connect_store(where, landscape.directory, redis_url)

    async def work() -> Created | None:
        from gardenbus.common.adapters.redis.backups import RedisBackups  # noqa: PLC0415  slow to import

        try:
            await connection.ensure_ready()
            async with contextlib.AsyncExitStack() as stack:
                api = None if without_requests else await stack.enter_async_context(connected(where))
                requests = None if api is None else _requests(api.bus, connection, where)
                source = BackupSource(RedisBackups(connection), where.prefix, _version(), requests)
                return await (_delta(source, place, where) if delta else create_full(source, place, _now))
        finally:
            await connection.close()
            await place.close()

    with exit_codes():
        created = event_loop.run(work())
        if created is None:
            show_lines(["nothing has changed since the latest backup"])
            return
        made = created.latest.backup
        waiting = f", {counted(made.waiting, 'request')} waiting" if made.waiting else ""
        size = f"{counted(created.records, 'record')}{waiting}, {_size_of(made)}"
        show_lines([f"backup {made.name} created in {place.place}: {size}"])


def ls(*, destination: Destination = "", output: Output = Format.TABLE) -> None:
    """Show the backups of a destination, the latest last.

    Example: gardenbus backup ls -d /var/backups/gardenbus -o json
    """
    with exit_codes():
        catalog = event_loop.run(_read(_opened(destination)))
    rows = [_row(each, catalog) for each in catalog.backups]
    if not printed(output, {"items": rows}, [row["name"] for row in rows]):
        show_rows(_table(catalog, datetime.now(UTC)))


def verify_command(
    name: Named = "",
    *,
    destination: Destination = "",
    every: Annotated[bool, typer.Option("--all", help="Check all backups, not only the latest chain.")] = False,
    output: Output = Format.TABLE,
) -> None:
    """Read backups to their ends: checksums, versions, and that none of the chain is missing.

    Ends with 1 when one cannot be used.

    Example: gardenbus backup verify -d /var/backups/gardenbus
    """
    with exit_codes():
        if every and name:
            raise BadRequest("--all, or the name of one: not both")
        found = event_loop.run(_verified(_opened(destination), name, every=every))
    if output in PROGRAMS:
        items = [
            {"name": each.backup.name, "problem": each.problem, "records": each.records, "requests": each.requests}
            for each in found
        ]
        show_document({"items": items}, output)
    else:
        table = new_table("", "NAME", folded="FOUND")
        for each in found:
            sign = Text("FAILED", style="bold red") if each.problem else Text("ok", style="green")
            waiting = f", {counted(each.requests, 'request')} waiting" if each.requests else ""
            found_text = each.problem or f"{counted(each.records, 'record')}{waiting}, as of {each.taken_at}"
            table.add_row(sign, each.backup.name, Text(found_text))
        show_rows(table)
    if any(each.problem for each in found):
        raise typer.Exit(Exit.FAILED)


def restore_command(
    *,
    destination: Destination = "",
    to: Annotated[str, typer.Option("--to", help="Name of a backup (default: the latest).", metavar="NAME")] = "",
    redis_url: RedisUrlOption = None,
    landscape: LandscapeOptions,
) -> None:
    """Restore a backup into an empty store, and put the orders back that waited, while no service but gardenlets runs.

    It is rejected while services are connected, or while the store has objects. Start the services afterwards: they
    announce everything anew, and gardenlets keep what they run.

    Example: gardenbus backup restore -d /var/backups/gardenbus --redis-url redis://127.0.0.1:6379/0
    """
    quiet_logs()
    with exit_codes():
        place = _opened(destination)
        where = find_landscape(*landscape)
        connection = connect_store(where, landscape.directory, redis_url)

    with exit_codes():
        done = event_loop.run(restored_from(place, to, where, connection))
        backups = f"{counted(len(done.chain.backups), 'backup')}, up to {done.chain.last.name}"
        waiting = [
            f"{counted(done.requests, 'request')} put back that waited then: they are carried out once services run."
        ]
        show_lines(
            [
                f"{counted(done.objects, 'object')} restored from {backups}",
                *(waiting if done.requests else ()),
                *(f"{name} could not be read: who was revoked since may come in again." for name in done.unread),
                f"The store is as it was at {done.taken_at}: what was written after that is gone, unless NATS has it.",
                "Start the services. `gardenbus doctor` names what gardenlets run and the store does not know.",
            ]
        )


async def restored_from(
    place: BackupDestination, to: str, where: LandscapeTarget, connection: "RedisConnection", leader: str = ""
) -> RestoredChain:
    """Restore a backup (`""`: the latest) while nobody serves; closes both. Raises as `restore` does."""
    from gardenbus.common.adapters.redis.backups import RedisBackups  # noqa: PLC0415  slow to import

    try:
        chain = chosen_chain(await read_catalog(place), to, place.place)
        await _check_nobody_serves(where)
        async with connected(where, makes=("REQUESTS",)) as api:
            requests = _requests(api.bus, connection, where)
            return await restore(RedisBackups(connection), place, chain, where.prefix, requests, leader)
    finally:
        await connection.close()
        await place.close()


backup.command("create", help=help_of(create))(create)
backup.command("ls", help=help_of(ls))(ls)
backup.command("list", help=help_of(ls), hidden=True)(ls)
backup.command("verify", help=help_of(verify_command))(verify_command)
backup.command("restore", help=help_of(restore_command))(restore_command)


async def _delta(source: BackupSource, place: BackupDestination, where: LandscapeTarget) -> Created | None:
    latest = await latest_of(place, await read_catalog(place), where.prefix)
    if latest is None:
        raise NotFound(f"no full backup in {place.place} to go on from: leave out --delta")
    return await create_delta(source, place, _now, latest)


def _requests(bus: Bus, connection: "RedisConnection", where: LandscapeTarget) -> WaitingRequests:
    from gardenbus.common.adapters.redis.stream_histories import RedisStreamHistories  # noqa: PLC0415  slow to import

    return WaitingRequests(bus, RedisStreamHistories(connection), Subjects(where.prefix))


def _opened(address: str) -> BackupDestination:
    if not address:
        raise BadRequest("where are the backups? Name the place with -d, or in GARDENBUS_BACKUP_DESTINATION")
    return destination_of(address, given_settings("GARDENBUS_STREAM_REPLICAS").stream_replicas)


async def _read(place: BackupDestination) -> Catalog:
    try:
        return await read_catalog(place)
    finally:
        await place.close()


async def _verified(place: BackupDestination, name: str, *, every: bool) -> Sequence[Checked]:
    try:
        catalog = await read_catalog(place)
        chains: Sequence[Chain] = catalog.chains if every else (chosen_chain(catalog, name, place.place),)
        missing = [
            Checked(each, "goes on from a version at which no backup ends: one is missing") for each in catalog.loose
        ]
        return [*[each for chain in chains for each in await verify(place, chain)], *(missing if every else ())]
    finally:
        await place.close()


async def _check_nobody_serves(where: LandscapeTarget) -> None:
    """Raise Conflict while services that write to the store are connected; Unavailable without NATS."""
    from gardenbus.diagnostics.admin import connect_admin  # noqa: PLC0415  slow to import

    try:
        async with (
            asyncio.timeout(CONNECT_SECONDS + 3),
            connect_admin(where.nats_url, "gardenbus-restore", credentials_of(where)) as admin,
        ):
            responses = await admin.request_many("$SRV.PING", within_seconds=1.0)
    except TimeoutError as error:
        shown = without_user(where.nats_url)
        raise Unavailable(f"no NATS at {shown}: start it first, it may be empty, so that services are seen") from error
    running = serving(responses, where.prefix)
    if running:
        raise Conflict(
            f"{', '.join(running)} of this landscape run: stop all services but gardenlets and member agents"
        )


def serving(responses: Sequence[dict[str, Any]], prefix: str) -> Sequence[str]:
    """Names of the services of a landscape, by their responses to PING, that write to the store. Pure."""
    of_landscape = (each for each in responses if section(each, "metadata").get("prefix") == prefix)
    return sorted({str(each.get("name")) for each in of_landscape} - READERS)


def _table(catalog: Catalog, now: datetime) -> Table:
    table = new_table("NAME", "KIND", ">VERSION", ">SIZE", "AGE", ">WAITING", "GOES ON FROM")
    before = _before(catalog)
    for each in catalog.backups:
        taken_at = each.taken_at.isoformat()
        goes_on = "" if each.is_full else before.get(each.name) or Text("MISSING", style="bold red")
        counts = (str(each.version), _size_of(each), age_of(taken_at, now), str(each.waiting or ""))
        table.add_row(each.name, _kind(each), *counts, goes_on)
    return table


def _row(each: Backup, catalog: Catalog) -> dict[str, Any]:
    return {
        "name": each.name,
        "kind": _kind(each),
        "takenAt": each.taken_at.isoformat().replace("+00:00", "Z"),
        "afterVersion": each.after,
        "version": each.version,
        "waitingRequests": each.waiting,
        "bytes": each.size,
        "previous": _before(catalog).get(each.name),
        "usable": each not in catalog.loose,
    }


def _before(catalog: Catalog) -> dict[str, str]:
    pairs = (pair for chain in catalog.chains for pair in zip(chain.backups, chain.deltas, strict=False))
    return {later.name: earlier.name for earlier, later in pairs}


def _kind(each: Backup) -> str:
    return "full" if each.is_full else "delta"


def _size_of(each: Backup) -> str:
    size, units = float(each.size), ["B", "KiB", "MiB", "GiB"]
    while size >= 1024 and len(units) > 1:  # noqa: PLR2004 - what a KiB is
        size, units = size / 1024, units[1:]
    return f"{size:.0f} {units[0]}" if units[0] == "B" else f"{size:.1f} {units[0]}"


def _now() -> datetime:
    return datetime.now(UTC)


def _version() -> str:
    from importlib.metadata import version  # noqa: PLC0415  only who writes needs it

    return version("gardenbus-common")
