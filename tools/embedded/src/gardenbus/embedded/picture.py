"""The live picture of a landscape, and the plain lines in its place where there is no terminal. Pure."""

import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rich import box
from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from gardenbus.cli.client.summaries import SetSummary, ShootSummary
from gardenbus.cli.local.directory import ServiceStatus
from gardenbus.cli.output.landscape_tables import BAR_WIDTH, STATE_STYLES, seeds_table, states_line
from gardenbus.cli.output.terminal_console import TerminalConsole
from gardenbus.common.api.garden.rows import SeedRow, ShootOperationState
from gardenbus.common.api.garden.unschedulable import brief_reason

SHOOT_ROWS = 12
TIGHT_LINES = 30
"""Terminals with fewer lines get tables without empty lines around them, and one line of events beside rejections."""
FRAME_LINES = 2
FRAME_COLUMNS = 4
HEAD_LINES = 3
"""Of a table of shoots: its title, its columns' names, the rule (and two more where it is not tight)."""
SERVICE_STYLES: Mapping[str, str] = {"ready": "green", "starting": "yellow", "waiting": "red", "running": "green"}


class Scene(NamedTuple):
    """All that is shown at one moment."""

    title: str
    services: Sequence[ServiceStatus]
    seeds: Sequence[SeedRow]
    shoots: Sequence[ShootSummary]
    sets: Sequence[SetSummary] = ()
    messages: Sequence[str] = ()
    is_converged: bool = False
    footer: str = ""
    more_hint: str = "gardenbus get shoots"
    """The command that shows all shoots."""


class TerminalSize(NamedTuple):
    """Columns and lines of the terminal."""

    columns: int
    lines: int


def picture(scene: Scene, size: TerminalSize | None = None) -> RenderableType:
    """Services, seeds with their usage, shoots by state with progress; no more rows of shoots than `size` has room for.

    While it starts there are neither seeds nor shoots, and no empty tables for them.
    """
    is_tight = size is not None and size.lines < TIGHT_LINES
    above: list[RenderableType] = [services_line(scene.services)]
    if scene.seeds:
        above.append(seeds_table(scene.seeds, usage_of(scene.shoots), is_tight=is_tight))
    above += [set_line(each) for each in sorted(scene.sets, key=lambda each: each.name)]
    if scene.seeds or scene.shoots:
        above.append(states_line(Counter(shoot.state for shoot in scene.shoots)))
    is_busy = any(shoot.state in _BUSY for shoot in scene.shoots)
    has_unschedulable = scene.is_converged and any(not shoot.seed for shoot in scene.shoots)
    messages = scene.messages[-1:] if is_tight and (is_busy or has_unschedulable) else scene.messages
    below: list[RenderableType] = [Text(line, style="yellow") for line in messages]
    room = None if size is None else size.lines - FRAME_LINES - _lines_of([*above, *below], size.columns)
    middle: list[RenderableType] = []
    if is_busy:
        middle.append(
            progress_table(scene.shoots, rows=_rows_in(room, SHOOT_ROWS, is_tight=is_tight), is_tight=is_tight)
        )
        if size is not None and room is not None:
            room -= _lines_of(middle, size.columns)
    if has_unschedulable:
        rows = _rows_in(room, None, is_tight=is_tight)
        if unplaced := unplaced_table(
            scene.shoots, is_brief=True, rows=rows, is_tight=is_tight, more_hint=scene.more_hint
        ):
            middle.append(unplaced)
    parts = [*above, *middle, *below]
    return Panel(
        Group(*parts),
        title=Text(scene.title),
        subtitle=Text(scene.footer) if scene.footer else None,
        box=box.ROUNDED,
        padding=(0, 1),
    )


_BUSY: frozenset[ShootOperationState] = frozenset({"processing", "error", "deleting"})


def _lines_of(parts: Sequence[RenderableType], columns: int) -> int:
    console = TerminalConsole(width=max(1, columns - FRAME_COLUMNS), file=io.StringIO())
    return sum(len(console.render_lines(part)) for part in parts)


def _rows_in(room: int | None, most: int | None, *, is_tight: bool) -> int | None:
    """Number of rows of a table of shoots: as many as fit below its head, at least one."""
    if room is None:
        return most
    rows = max(1, room - HEAD_LINES - (0 if is_tight else 2))
    return rows if most is None else min(rows, most)


def services_line(services: Sequence[ServiceStatus]) -> RenderableType:
    """All services, each with its state; a line ends between services, never between a dot and its name."""
    return Columns([_service(service) for service in services], padding=(0, 2))


def _service(service: ServiceStatus) -> Text:
    style = SERVICE_STYLES.get(service.state, "dim")
    text = Text("● ", style=style, no_wrap=True)
    text.append(service.name, style="default")
    if service.state not in ("ready", "running"):
        text.append(f" {service.state}", style=style)
    if service.restarts:
        text.append(f" ↻{service.restarts}", style="yellow")
    return text


def set_line(row: SetSummary) -> Text:
    """A set of seeds: how many of those wanted are ready, and what is in the making."""
    text = Text(f"set {row.name}: ", no_wrap=True, overflow="ellipsis")
    text.append(f"{row.ready}/{row.wanted} seeds ready", style="green" if row.is_converged else "cyan")
    if row.pending_replica:
        text.append(f", {row.pending_replica}", style="dim")
    return text


def progress_table(shoots: Sequence[ShootSummary], *, rows: int | None = SHOOT_ROWS, is_tight: bool = False) -> Table:
    """Shoots that are being worked on, in at most so many rows; description and bar give way before names do."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=not is_tight)
    for column in ("SHOOT", "SEED", "OPERATION"):
        table.add_column(column, no_wrap=True)
    table.add_column("", max_width=BAR_WIDTH)
    table.add_column("")
    busy = sorted((shoot for shoot in shoots if shoot.state in _BUSY), key=_namespaced_name)
    shown = _shown(busy, rows)
    for shoot in shown:
        table.add_row(
            _name(shoot),
            shoot.seed,
            Text(f"{shoot.operation} {shoot.operation_state}".strip(), style=STATE_STYLES[shoot.state]),
            ProgressBar(total=100, completed=shoot.progress),
            _one_line(shoot.description, style="dim"),
        )
    if len(busy) > len(shown):
        table.add_row(f"… {len(busy) - len(shown)} more", "", "", "", "")
    return table


def unplaced_table(
    shoots: Sequence[ShootSummary],
    *,
    is_brief: bool = False,
    rows: int | None = None,
    is_tight: bool = False,
    more_hint: str = "gardenbus get shoots",
) -> Table | None:
    """Shoots without a seed and why; None when there is none.

    If brief, each is one line, in at most so many rows, the last of which says how many more there are.
    """
    unplaced = sorted((shoot for shoot in shoots if not shoot.seed), key=_namespaced_name)
    if not unplaced:
        return None
    table = Table(
        title=f"{len(unplaced)} shoots without a seed",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        header_style="bold",
        show_edge=not is_tight,
    )
    table.add_column("SHOOT", no_wrap=True)
    table.add_column("WHY", overflow="ellipsis" if is_brief else "fold")
    shown = _shown(unplaced, rows)
    for shoot in shown:
        table.add_row(_name(shoot), _one_line(_why(shoot)) if is_brief else Text(_why(shoot)))
    if len(unplaced) > len(shown):
        table.add_row(f"… and {len(unplaced) - len(shown)} more:", _one_line(more_hint))
    return table


def _shown(shoots: Sequence[ShootSummary], rows: int | None) -> Sequence[ShootSummary]:
    """As many as fit, with the last row left for the number of the others."""
    return shoots if rows is None or len(shoots) <= rows else shoots[: rows - 1]


def _name(shoot: ShootSummary) -> str:
    return f"{shoot.namespace}/{shoot.name}"


def _one_line(text: str, style: str = "") -> Text:
    return Text(" ".join(text.split()), style=style, no_wrap=True, overflow="ellipsis")


def unplaced_lines(shoots: Sequence[ShootSummary]) -> list[str]:
    """The same in lines."""
    unplaced = sorted((shoot for shoot in shoots if not shoot.seed), key=_namespaced_name)
    lines = [f"  {shoot.namespace}/{shoot.name}: {_why(shoot)}" for shoot in unplaced]
    return [f"{len(unplaced)} shoots without a seed:", *lines] if lines else []


def _why(shoot: ShootSummary) -> str:
    return brief_reason(shoot.description) or "not decided yet"


def status_line(scene: Scene) -> str:
    """The same in one line, for logs and pipes."""
    counts = Counter(shoot.state for shoot in scene.shoots)
    shown = ", ".join(f"{counts[state]} {state}" for state in STATE_STYLES if counts[state])
    ready = sum(seed.ready == "True" for seed in scene.seeds)
    down = [service.name for service in scene.services if service.state not in ("ready", "running")]
    trouble = f"; not ready: {', '.join(down)}" if down else ""
    sets = "".join(f"; {set_line(each).plain}" for each in sorted(scene.sets, key=lambda each: each.name))
    return f"seeds {ready}/{len(scene.seeds)} ready; {len(scene.shoots)} shoots: {shown or 'none'}{sets}{trouble}"


def _namespaced_name(shoot: ShootSummary) -> tuple[str, str]:
    return shoot.namespace, shoot.name


def usage_of(shoots: Iterable[ShootSummary]) -> Mapping[str, int]:
    """The shoots per seed; a migrating one counts on both."""
    used: Counter[str] = Counter()
    for shoot in shoots:
        used.update({shoot.seed, shoot.actual_seed} - {""})
    return used
