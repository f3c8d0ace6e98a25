"""The live picture of a landscape, and the plain lines in its place where there is no terminal. Pure."""

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from rich import box
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from gardenbus.cli.refusals import essence
from gardenbus.cli.rows import SeedRow, SetRow, ShootRow, ShootState, usage_of

SHOOT_ROWS = 12
SEED_ROWS = 20
BAR_WIDTH = 16
TIGHT_LINES = 30
"""Terminals with fewer lines get tables without empty lines around them, and one line of news beside refusals."""
FRAME_LINES = 2
FRAME_COLUMNS = 4
HEAD_LINES = 3
"""Of a table of shoots: its title, its columns' names, the rule (and two more where it is not tight)."""
NEARLY_FULL = Fraction(9, 10)

STATE_STYLES: Mapping[ShootState, str] = {
    "succeeded": "green",
    "processing": "cyan",
    "new": "white",
    "pending": "yellow",
    "error": "red",
    "failed": "bold red",
    "deleting": "magenta",
}
SERVICE_STYLES: Mapping[str, str] = {"ready": "green", "starting": "yellow", "waiting": "red", "running": "green"}


class ServiceRow(NamedTuple):
    """One process as people want to see it."""

    name: str
    state: str
    pid: int | None
    restarts: int = 0
    trouble: str = ""


class Scene(NamedTuple):
    """All that is shown at one moment."""

    title: str
    services: Sequence[ServiceRow]
    seeds: Sequence[SeedRow]
    shoots: Sequence[ShootRow]
    sets: Sequence[SetRow] = ()
    news: Sequence[str] = ()
    is_settled: bool = False
    footer: str = ""
    more_hint: str = "gardenbus get shoots"
    """The command that shows all shoots."""


class Size(NamedTuple):
    """Columns and lines of the terminal."""

    columns: int
    lines: int


def picture(scene: Scene, size: Size | None = None) -> RenderableType:
    """Services, seeds with their usage, shoots by state with progress; no more rows of shoots than `size` has room for.

    While it starts there are neither seeds nor shoots, and no empty tables for them.
    """
    is_tight = size is not None and size.lines < TIGHT_LINES
    above: list[RenderableType] = [services_line(scene.services)]
    if scene.seeds:
        above.append(seeds_table(scene.seeds, usage_of(scene.shoots), is_tight=is_tight))
    above += [set_line(each) for each in sorted(scene.sets)]
    if scene.seeds or scene.shoots:
        above.append(shoots_line(scene.shoots))
    is_busy = any(shoot.state in _BUSY for shoot in scene.shoots)
    has_refusals = scene.is_settled and any(not shoot.seed for shoot in scene.shoots)
    news = scene.news[-1:] if is_tight and (is_busy or has_refusals) else scene.news
    below: list[RenderableType] = [Text(line, style="yellow") for line in news]
    room = None if size is None else size.lines - FRAME_LINES - _lines_of([*above, *below], size.columns)
    middle: list[RenderableType] = []
    if is_busy:
        middle.append(
            progress_table(scene.shoots, rows=_rows_in(room, SHOOT_ROWS, is_tight=is_tight), is_tight=is_tight)
        )
        if size is not None and room is not None:
            room -= _lines_of(middle, size.columns)
    if has_refusals:
        rows = _rows_in(room, None, is_tight=is_tight)
        if unplaced := unplaced_table(
            scene.shoots, is_brief=True, rows=rows, is_tight=is_tight, more_hint=scene.more_hint
        ):
            middle.append(unplaced)
    parts = [*above, *middle, *below]
    return Panel(Group(*parts), title=scene.title, subtitle=scene.footer or None, box=box.ROUNDED, padding=(0, 1))


_BUSY: frozenset[ShootState] = frozenset({"processing", "error", "deleting"})


def _lines_of(parts: Sequence[RenderableType], columns: int) -> int:
    console = Console(width=max(1, columns - FRAME_COLUMNS), file=io.StringIO())
    return sum(len(console.render_lines(part)) for part in parts)


def _rows_in(room: int | None, most: int | None, *, is_tight: bool) -> int | None:
    """How many rows a table of shoots may have: what there is room for below its head, at least one."""
    if room is None:
        return most
    rows = max(1, room - HEAD_LINES - (0 if is_tight else 2))
    return rows if most is None else min(rows, most)


def services_line(services: Sequence[ServiceRow]) -> RenderableType:
    """All services, each with its state; a line ends between services, never between a dot and its name."""
    return Columns([_service(service) for service in services], padding=(0, 2))


def _service(service: ServiceRow) -> Text:
    style = SERVICE_STYLES.get(service.state, "dim")
    text = Text("● ", style=style, no_wrap=True)
    text.append(service.name, style="default")
    if service.state not in ("ready", "running"):
        text.append(f" {service.state}", style=style)
    if service.restarts:
        text.append(f" ↻{service.restarts}", style="yellow")
    return text


def seeds_table(seeds: Sequence[SeedRow], usage: Mapping[str, int], *, is_tight: bool = False) -> Table:
    """Seeds with readiness and used/allocatable; the bar gives way before a name does."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=not is_tight)
    for column in ("SEED", "PROVIDER", "REGION", "GARDENLET"):
        table.add_column(column, no_wrap=True)
    table.add_column("SHOOTS", justify="right", no_wrap=True)
    table.add_column("", max_width=BAR_WIDTH)
    shown = sorted(seeds)[:SEED_ROWS]
    for seed in shown:
        used = usage.get(seed.name, 0)
        table.add_row(
            seed.name, seed.provider, seed.region, readiness(seed), used_of(used, seed.allocatable), bar(used, seed)
        )
    if len(seeds) > len(shown):
        ready = sum(seed.ready == "True" for seed in seeds)
        table.add_row(f"… {len(seeds) - len(shown)} more", "", "", f"{ready}/{len(seeds)} ready", "", "")
    return table


def set_line(row: SetRow) -> Text:
    """A set of seeds: how many of those wanted are ready, and what is in the making."""
    text = Text(f"set {row.name}: ", no_wrap=True, overflow="ellipsis")
    text.append(f"{row.ready}/{row.wanted} seeds ready", style="green" if row.is_settled else "cyan")
    if row.pending:
        text.append(f", {row.pending}", style="dim")
    return text


def readiness(seed: SeedRow) -> Text:
    """Whether the gardenlet is well, in a word and a colour."""
    if seed.is_deleting:
        return Text("deleting", style="magenta")
    words = {"True": ("ready", "green"), "Unknown": ("unknown", "red"), "": ("not reported", "yellow")}
    word, style = words.get(seed.ready, (seed.reason or seed.ready, "red"))
    return Text(word if seed.is_visible else f"{word}, hidden", style=style)


def used_of(used: int, allocatable: Fraction | None) -> str:
    """`12/50`; without a limit the number alone."""
    if allocatable is None:
        return str(used)
    return f"{used}/{allocatable if allocatable.denominator == 1 else round(float(allocatable), 3)}"


def bar(used: int, seed: SeedRow) -> RenderableType:
    """How full a seed is."""
    if not seed.allocatable:
        return ""
    is_nearly_full = used >= seed.allocatable * NEARLY_FULL
    return ProgressBar(
        total=float(seed.allocatable),
        completed=used,
        complete_style="red" if is_nearly_full else "green",
        finished_style="red",
    )


def shoots_line(shoots: Sequence[ShootRow]) -> Text:
    """Shoots by state."""
    counts = Counter(shoot.state for shoot in shoots)
    text = Text(f"{len(shoots)} shoots", style="bold")
    for state, style in STATE_STYLES.items():
        if counts[state]:
            text.append(f"   {counts[state]} {state}", style=style)
    return text


def progress_table(shoots: Sequence[ShootRow], *, rows: int | None = SHOOT_ROWS, is_tight: bool = False) -> Table:
    """Shoots that are being worked on, in at most so many rows; description and bar give way before names do."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=not is_tight)
    for column in ("SHOOT", "SEED", "OPERATION"):
        table.add_column(column, no_wrap=True)
    table.add_column("", max_width=BAR_WIDTH)
    table.add_column("")
    busy = sorted(shoot for shoot in shoots if shoot.state in _BUSY)
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
    shoots: Sequence[ShootRow],
    *,
    is_brief: bool = False,
    rows: int | None = None,
    is_tight: bool = False,
    more_hint: str = "gardenbus get shoots",
) -> Table | None:
    """Shoots without a seed and why; None when there is none.

    If brief, each is one line, in at most so many rows, the last of which says how many more there are.
    """
    unplaced = sorted(shoot for shoot in shoots if not shoot.seed)
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


def _shown(shoots: Sequence[ShootRow], rows: int | None) -> Sequence[ShootRow]:
    """As many as fit, with the last row left for the number of the others."""
    return shoots if rows is None or len(shoots) <= rows else shoots[: rows - 1]


def _name(shoot: ShootRow) -> str:
    return f"{shoot.namespace}/{shoot.name}"


def _one_line(text: str, style: str = "") -> Text:
    return Text(" ".join(text.split()), style=style, no_wrap=True, overflow="ellipsis")


def unplaced_lines(shoots: Sequence[ShootRow]) -> list[str]:
    """The same in lines."""
    unplaced = sorted(shoot for shoot in shoots if not shoot.seed)
    lines = [f"  {shoot.namespace}/{shoot.name}: {_why(shoot)}" for shoot in unplaced]
    return [f"{len(unplaced)} shoots without a seed:", *lines] if lines else []


def _why(shoot: ShootRow) -> str:
    return essence(shoot.description) or "not decided yet"


def plain_line(scene: Scene) -> str:
    """The same in one line, for logs and pipes."""
    counts = Counter(shoot.state for shoot in scene.shoots)
    shown = ", ".join(f"{counts[state]} {state}" for state in STATE_STYLES if counts[state])
    ready = sum(seed.ready == "True" for seed in scene.seeds)
    down = [service.name for service in scene.services if service.state not in ("ready", "running")]
    trouble = f"; not ready: {', '.join(down)}" if down else ""
    sets = "".join(f"; {set_line(each).plain}" for each in sorted(scene.sets))
    return f"seeds {ready}/{len(scene.seeds)} ready; {len(scene.shoots)} shoots: {shown or 'none'}{sets}{trouble}"
