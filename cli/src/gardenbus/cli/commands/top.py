"""`top`: seeds, shoots, services, queues and users as they are now, redrawn while they change."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import typer
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gardenbus.cli.client.api import OPERATORS_ALONE, ApiClient
from gardenbus.cli.client.cache import LandscapeCache
from gardenbus.cli.client.targets import LandscapeTarget, credentials_of, find_landscape
from gardenbus.cli.commands.options import LandscapeOptions, run_with_client
from gardenbus.cli.commands.top_history import TopFormat, scope_of, show_history
from gardenbus.cli.diagnostics.budget_use import uses_of
from gardenbus.cli.diagnostics.process_usage import ProcessUsage, cpu_share, process_usage
from gardenbus.cli.local.directory import LandscapeDirectory, default_directory
from gardenbus.cli.logs.lines import parse_duration
from gardenbus.cli.manifests.files import as_mapping
from gardenbus.cli.output.columns import age_of
from gardenbus.cli.output.console import PROGRAMS, Exit, Format, console, print_error, show, show_document
from gardenbus.cli.output.landscape_tables import (
    BAR_WIDTH,
    STATE_STYLES,
    bar,
    readiness,
    seeds_table,
    states_line,
    used_of,
)
from gardenbus.cli.output.live import keep_showing
from gardenbus.common.api.budgets import LimitUse, shown_limit
from gardenbus.common.api.garden.busy_shoots import BusyShoot, slowest
from gardenbus.common.api.garden.rows import SeedRow, ShootOperationState
from gardenbus.common.api.garden.unschedulable import brief_reason
from gardenbus.common.api.history import LEVELS
from gardenbus.common.api.keys import LEASE_NAMESPACE
from gardenbus.common.errors import BadRequest, Forbidden, Unavailable
from gardenbus.common.ports.clock import parse_timestamp
from gardenbus.diagnostics import jetstream
from gardenbus.diagnostics.work_queues import work_rows

CACHE_SYNC_SECONDS = 10.0
REDRAW_SECONDS = 1.0
SAMPLE_SECONDS = 0.5
"""Between two samples of what is measured by its growth, where only one picture is wanted."""
LATE_SECONDS = 40.0
"""A heartbeat that is older makes a seed Unknown, unless lifecycle is configured otherwise."""
MOST_SEEDS = 40
"""Seeds in a picture, at the most; programs get all."""
MOST_USES = 40
"""Limits of users in a picture, at the most."""
NEARLY_ALL = 0.8
DEFAULT_HISTORY = "24h"
LEASES = 10_000
"""Leases in one response: each reads all of them from the bus."""
_BYTES = 1024.0


class Subject(StrEnum):
    """Subjects of `top`."""

    SEEDS = "seeds"
    SHOOTS = "shoots"
    SERVICES = "services"
    QUEUES = "queues"
    USERS = "users"


class TopView(NamedTuple):
    """One look: a picture for people, rows for programs."""

    picture: RenderableType
    rows: Sequence[Mapping[str, Any]]


Sampler = Callable[[], Awaitable[TopView]]


def top(  # noqa: PLR0913 - one parameter an option
    what: Annotated[Subject | None, typer.Argument(help="What to show (default: seeds and shoots).")] = None,
    *,
    once: Annotated[bool, typer.Option("--once", help="One picture, also on a terminal.")] = False,
    follow: Annotated[bool, typer.Option("--watch", "-w", help="Keep it current, also without a terminal.")] = False,
    history: Annotated[
        bool, typer.Option("--history", help="How it was over time, and what happened: up to 30 days.")
    ] = False,
    since: Annotated[str, typer.Option("--since", help="With --history: the time shown, as 6h, 7d, 30d.")] = "",
    of: Annotated[
        str,
        typer.Option(
            "--of",
            help="With --history: seed/NAME, region/PROVIDER/REGION or set/NAMESPACE/NAME (default: all).",
            metavar="PART",
        ),
    ] = "",
    output: Annotated[
        TopFormat, typer.Option("-o", "--output", help="How it is printed; csv with --history only.")
    ] = TopFormat.TABLE,
    landscape: LandscapeOptions,
) -> None:
    """Show how full seeds are, which shoots are slow, what services take, how deep queues are, who uses up a budget.

    On a terminal it is kept current until Ctrl-C; elsewhere, and with --once, it is shown once. With --history it
    shows waiting shoots, times to placement, capacity and sizes of sets over time, and what happened meanwhile.

    Example: gardenbus top services --once
    """
    if history:
        _show_history(what, since, of, output, landscape)
        return
    if since or of or output is TopFormat.CSV:
        print_error("--since, --of and -o csv are for --history: add it")
        raise typer.Exit(Exit.USAGE)
    is_live = (follow or (console.is_terminal and not once)) and output in (TopFormat.TABLE, TopFormat.WIDE)

    async def work(api: ApiClient) -> None:
        async with contextlib.AsyncExitStack() as stack:
            target = find_landscape(*landscape)
            place = target.directory or landscape.directory
            if what is Subject.USERS:
                sample = await _users_sampler(api, target, stack)
            else:
                sample = await _sampler_for(what, api, place, stack)
            if is_live:
                await keep_showing(lambda: _picture(sample), every_seconds=REDRAW_SECONDS)
            if what in (Subject.SERVICES, Subject.QUEUES):
                await sample()
                await asyncio.sleep(SAMPLE_SECONDS)
            _print(await sample(), output.way)

    try:
        run_with_client(work, *landscape)
    except TimeoutError as error:
        print_error("the state of the landscape could not be read")
        raise typer.Exit(Exit.OUT_OF_REACH) from error


def _show_history(what: Subject | None, since: str, of: str, output: TopFormat, landscape: tuple[Any, ...]) -> None:
    if what is not None:
        print_error(f"{what.value}: --history has no subject; --of chooses a part of the landscape")
        raise typer.Exit(Exit.USAGE)
    try:
        scope, lasting = scope_of(of), parse_duration(since or DEFAULT_HISTORY)
    except BadRequest as error:
        print_error(error.message)
        raise typer.Exit(Exit.USAGE) from error
    if not timedelta(0) < lasting <= LEVELS[-1].kept:
        print_error(f"--since {since}: between a second and {LEVELS[-1].kept.days}d")
        raise typer.Exit(Exit.USAGE)
    run_with_client(lambda api: show_history(api, scope, lasting, output), *landscape)


async def _picture(sample: Sampler) -> RenderableType:
    return (await sample()).picture


def _print(view: TopView, output: Format) -> None:
    if output in PROGRAMS:
        show_document({"items": [dict(row) for row in view.rows]}, output)
    else:
        show(view.picture)


async def _sampler_for(
    what: Subject | None, api: ApiClient, directory: Path | None, stack: contextlib.AsyncExitStack
) -> Sampler:
    """Sampler for a subject; its watch of the landscape ends with the stack."""
    if what is Subject.SERVICES:
        return ServiceSampler(directory or default_directory()).sample
    if what is Subject.QUEUES:
        return QueueSampler(api).sample
    if what is Subject.SHOOTS:
        return ShootSampler(api).sample
    cache = LandscapeCache(api, kinds=("seed",))
    stack.callback(asyncio.create_task(cache.run()).cancel)

    async def seeds() -> list[SeedRow]:
        async with asyncio.timeout(CACHE_SYNC_SECONDS):
            await cache.current.wait()
        return list(cache.seeds.values())

    async def sample() -> TopView:
        if what is Subject.SEEDS:
            return seeds_view(*await asyncio.gather(seeds(), api.usage(), heartbeats(api)))
        return landscape_view(*await asyncio.gather(seeds(), api.usage(), api.census()))

    return sample


async def _users_sampler(api: ApiClient, target: LandscapeTarget, stack: contextlib.AsyncExitStack) -> Sampler:
    """Sampler for users. Raises Forbidden for people, who may not request STATS."""
    from gardenbus.diagnostics.admin import connect_admin  # noqa: PLC0415  slow to import

    if api.user:
        raise Forbidden(f"{api.user} may not read what others use: {OPERATORS_ALONE}")
    connecting = connect_admin(target.nats_url, "gardenbus-top", credentials_of(target))
    admin = await stack.enter_async_context(connecting)

    async def sample() -> TopView:
        responses = await admin.request_many("$SRV.STATS", within_seconds=REDRAW_SECONDS)
        return users_view(uses_of(responses, api.subjects.prefix))

    return sample


# ---------------------------------------------------------------------------------------------------- seeds and shoots


class ShootCensus(msgspec.Struct, frozen=True, rename="camel"):
    """The response to `census.shoot`."""

    states: dict[ShootOperationState, int]
    busy: int
    slowest: list[BusyShoot]
    uncounted: int


class ShootSampler:
    """Shoots by state and the slowest of them, as the store counts them: no other shoot is read."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    async def sample(self) -> TopView:
        """Request the counts; a line above them says how many shoots they lack. Raises Unavailable."""
        result = await self._api.call("census.shoot")
        try:
            counts = msgspec.convert(result, ShootCensus)
        except msgspec.ValidationError as error:
            raise Unavailable(
                f"the apiserver has no census of shoots; is it older than this client? {error}"
            ) from error
        view = shoots_view(counts.states, counts.slowest, datetime.now(UTC), busy=counts.busy)
        if not counts.uncounted:
            return view
        words = f"{counts.uncounted} shoots are not counted yet: the relay is reading what an older version stored"
        return view._replace(picture=Group(Text(words, style="yellow"), view.picture))


async def heartbeats(api: ApiClient) -> dict[str, float]:
    """Seconds since the last renewal of each seed's Lease, by the clock of this machine. Raises Unavailable."""
    now = datetime.now(UTC)
    found: dict[str, float] = {}
    for lease in await api.items(f"lease.{LEASE_NAMESPACE}", {"limit": LEASES}):
        renewed = jetstream.parse_server_time(as_mapping(lease.get("spec")).get("renewTime"))
        if renewed is not None:
            found[str(as_mapping(lease.get("metadata")).get("name"))] = max(0.0, (now - renewed).total_seconds())
    return found


def landscape_view(seeds: Sequence[SeedRow], usage: Mapping[str, int], census: Mapping[str, int]) -> TopView:
    """Seeds with their use, and how many shoots there are, as the store counts them: no shoot is read."""
    shoots, pending, waiting = (census.get(name, 0) for name in ("objects.shoot", "shoots.pending", "shoots.waiting"))
    line = Text(f"{shoots} shoots", style="bold")
    for count, words, style in (
        (waiting, "unschedulable", STATE_STYLES["pending"]),
        (pending - waiting, "not decided yet", "yellow"),
    ):
        if count > 0:
            line.append(f"   {count} {words}", style=style)
    rows = [{"seed": seed.name, "ready": seed.ready, "used": usage.get(seed.name, 0)} for seed in seeds]
    return TopView(Group(seeds_table(seeds, usage), line), rows)


def _age_when_silent(seed: SeedRow) -> float | None:
    """Seconds since the last heartbeat of a seed whose Lease has ended; None where none is known."""
    last = parse_timestamp(seed.last_heartbeat)
    return None if last is None else max(0.0, (datetime.now(UTC) - last).total_seconds())


def seeds_view(seeds: Sequence[SeedRow], usage: Mapping[str, int], ages: Mapping[str, float]) -> TopView:
    """Seeds, the fullest first: their use, whether they are ready, and how old their heartbeat is."""

    def fill(seed: SeedRow) -> float:
        return usage.get(seed.name, 0) / seed.capacity if seed.capacity else 0.0

    table = _table("SEED", "PROVIDER", "REGION", "GARDENLET", "HEARTBEAT", ">SHOOTS", ">FULL", "")
    rows: list[Mapping[str, Any]] = []
    for number, seed in enumerate(sorted(seeds, key=lambda seed: (-fill(seed), seed.name))):
        used, age = usage.get(seed.name, 0), ages.get(seed.name, _age_when_silent(seed))
        rows.append(
            {
                "seed": seed.name,
                "ready": seed.ready,
                "heartbeatSeconds": age,
                "used": used,
                "allocatable": seed.capacity,
            }
        )
        if number >= MOST_SEEDS:
            continue
        beat = Text("none", style="red") if age is None else Text(f"{age:.0f}s", style=_lateness(age))
        shown = used_of(used, seed.capacity)
        full = f"{fill(seed):.0%}" if seed.capacity else ""
        table.add_row(seed.name, seed.provider, seed.region, readiness(seed), beat, shown, full, bar(used, seed))
    if (more := len(rows) - MOST_SEEDS) > 0:
        return TopView(Group(table, Text(f"… {more} more", style="dim")), rows)
    return TopView(table, rows)


def _lateness(age_seconds: float) -> str:
    if age_seconds >= LATE_SECONDS:
        return "red"
    return "yellow" if age_seconds >= LATE_SECONDS / 2 else "green"


def shoots_view(
    states: Mapping[ShootOperationState, int], shoots: Iterable[BusyShoot], now: datetime, *, busy: int
) -> TopView:
    """Shoots by state, and those whose operations have been going on the longest; `busy` is how many go on."""
    first = slowest(shoots)
    table = _table("SHOOT", "SEED", "OPERATION", ">DONE", ">FOR", "DESCRIPTION")
    rows: list[Mapping[str, Any]] = [{"states": {state: count for state, count in states.items() if count}}]
    for shoot in first:
        name, operation = f"{shoot.namespace}/{shoot.name}", f"{shoot.operation} {shoot.operation_state}".strip()
        style = STATE_STYLES.get(shoot.state, "")
        age = age_of(shoot.began_at, now)
        description = Text(
            " ".join(brief_reason(shoot.description).split()), no_wrap=True, overflow="ellipsis", style="dim"
        )
        table.add_row(
            name, shoot.seed or "-", Text(operation or "new", style=style), f"{shoot.progress}%", age, description
        )
        rows.append({"shoot": name, "seed": shoot.seed, "operation": operation, "beganAt": shoot.began_at})
    more = busy - len(first)
    parts: list[RenderableType] = [states_line(states), Text("")]
    parts.append(table if first else Text("all shoots are as they should be", style="green"))
    return TopView(Group(*parts, *([Text(f"… {more} more", style="dim")] if more > 0 else [])), rows)


# ------------------------------------------------------------------------------------------------- services and queues


class ServiceSampler:
    """Samples the processes of a local landscape."""

    def __init__(self, directory: Path) -> None:
        self._directory = LandscapeDirectory(directory)
        self._before: dict[int, ProcessUsage] = {}

    async def sample(self) -> TopView:
        """Each process: whether it is ready, how much processor and memory it takes, how often it was started again."""
        from gardenbus.cli.local.health import service_rows  # noqa: PLC0415  its HTTP client is slow to import

        landscape = self._directory.read()
        if landscape is None:
            hint = f"no landscape in {self._directory.path}: elsewhere use `nats micro ls`, or your metrics"
            return TopView(Text(hint, style="yellow"), [])
        table = _table("SERVICE", "STATE", ">PID", ">CPU", ">MEMORY", ">UP", ">RESTARTS", "TROUBLE")
        rows: list[Mapping[str, Any]] = []
        total_cpu, total_bytes = 0.0, 0
        for row in await service_rows(landscape):
            seen = process_usage(row.pid) if row.pid else None
            cpu = cpu_share(self._before.get(row.pid or 0), seen)
            if row.pid and seen:
                self._before[row.pid] = seen
                total_cpu, total_bytes = total_cpu + (cpu or 0.0), total_bytes + seen.rss_bytes
            style = "green" if row.state == "ready" else "dim" if row.state == "external" else "red"
            table.add_row(
                row.name,
                Text(row.state, style=style),
                str(row.pid or ""),
                "" if cpu is None else f"{cpu:.1%}",
                size_of(seen.rss_bytes) if seen else "",
                _age(seen.age_seconds) if seen else "",
                Text(str(row.restarts), style="yellow" if row.restarts else ""),
                Text(" ".join(row.trouble.split())),
            )
            rows.append(
                {
                    "service": row.name,
                    "state": row.state,
                    "pid": row.pid,
                    "cpu": cpu,
                    "rssBytes": seen.rss_bytes if seen else None,
                    "upSeconds": seen.age_seconds if seen else None,
                    "restarts": row.restarts,
                }
            )
        table.add_row(Text("all", style="bold"), "", "", f"{total_cpu:.1%}", size_of(total_bytes), "", "", "")
        return TopView(table, rows)


class QueueSampler:
    """The queues of work, and how fast work is handed out."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        self._before: dict[str, tuple[float, int]] = {}

    async def sample(self) -> TopView:
        """Each queue: messages that wait, those in flight, and deliveries a second since the last sample."""
        table = _table(
            "QUEUE", ">WAITING", ">IN HAND", ">PER SECOND", ">REDELIVERED", ">LATER", ">LISTENING", ">OLDEST"
        )
        rows: list[Mapping[str, Any]] = []
        now, clock = datetime.now(UTC), asyncio.get_running_loop().time()
        for row in await work_rows(self._api):
            at, delivered = self._before.get(row.queue, (clock, row.delivered))
            rate = (row.delivered - delivered) / (clock - at) if clock > at and row.delivered >= delivered else 0.0
            self._before[row.queue] = (clock, row.delivered)
            style = "red" if row.pending and not row.listening else "cyan" if rate or row.in_flight else ""
            counts = (str(row.redelivered), str(row.later), str(row.listening))
            oldest = age_of(row.oldest, now) if row.oldest else ""
            depth = (str(row.pending), str(row.in_flight), f"{rate:.1f}")
            table.add_row(row.queue, *depth, *counts, oldest, style=style)
            rows.append({**row.document, "perSecond": rate})
        return TopView(table, rows)


def users_view(uses: Sequence[LimitUse]) -> TopView:
    """Users, with what they hold of the limits of their budgets: the highest share first."""
    table = _table("USER", "LIMIT", ">HELD", ">OF", ">USED")
    rows: list[Mapping[str, Any]] = []
    for use in uses:
        rows.append({"user": use.user, "limit": use.limit, "held": use.held, "most": use.most, "share": use.share})
        if len(rows) <= MOST_USES:
            held, most = (shown_limit(use.limit, number) for number in (use.held, use.most))
            style = "red" if use.share >= NEARLY_ALL else ""
            table.add_row(Text(use.user or "nobody"), use.limit, held, most, f"{use.share:.0%}", style=style)
    if (more := len(rows) - MOST_USES) > 0:
        return TopView(Group(table, Text(f"… {more} more", style="dim")), rows)
    return TopView(table if rows else Text("no usage", style="green"), rows)


def size_of(count: int) -> str:
    """`512 KiB`, `83 MiB`, `1.2 GiB`."""
    size = count / _BYTES
    for unit in ("KiB", "MiB"):
        if size < _BYTES:
            return f"{size:.0f} {unit}"
        size /= _BYTES
    return f"{size:.1f} GiB"


def _age(seconds: float) -> str:
    now = datetime.now(UTC)
    return age_of(datetime.fromtimestamp(now.timestamp() - seconds, UTC).isoformat(), now)


def _table(*titles: str) -> Table:
    """A table; a title that begins with `>` is a column of numbers. Its last column gives way first."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for title in titles:
        table.add_column(
            title.removeprefix(">"),
            no_wrap=title != titles[-1],
            justify="right" if title.startswith(">") else "left",
            max_width=None if title else BAR_WIDTH,
        )
    return table
