"""The live picture of a landscape, and the plain lines in its place where there is no terminal. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from gardenbus.cli.rows import SeedRow, ShootRow, ShootState, usage_of

SHOOT_ROWS = 12
SEED_ROWS = 20
BAR_WIDTH = 16
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
    news: Sequence[str] = ()
    is_settled: bool = False
    footer: str = ""


def picture(scene: Scene) -> RenderableType:
    """Services, seeds with their usage, shoots by state with progress."""
    parts: list[RenderableType] = [
        services_line(scene.services),
        seeds_table(scene.seeds, usage_of(scene.shoots)),
        shoots_line(scene.shoots),
    ]
    if any(shoot.state in ("processing", "error", "deleting") for shoot in scene.shoots):
        parts.append(progress_table(scene.shoots))
    if scene.is_settled and (unplaced := unplaced_table(scene.shoots, is_brief=True)):
        parts.append(unplaced)
    parts += [Text(line, style="yellow") for line in scene.news]
    return Panel(Group(*parts), title=scene.title, subtitle=scene.footer or None, box=box.ROUNDED, padding=(0, 1))


def services_line(services: Sequence[ServiceRow]) -> Text:
    """All services in one paragraph, each with its state."""
    text = Text()
    for service in services:
        style = SERVICE_STYLES.get(service.state, "dim")
        text.append("● ", style=style)
        text.append(service.name)
        if service.state not in ("ready", "running"):
            text.append(f" {service.state}", style=style)
        if service.restarts:
            text.append(f" ↻{service.restarts}", style="yellow")
        text.append("   ")
    return text


def seeds_table(seeds: Sequence[SeedRow], usage: Mapping[str, int]) -> Table:
    """Seeds with readiness and used/allocatable."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column in ("SEED", "PROVIDER", "REGION", "GARDENLET"):
        table.add_column(column, no_wrap=True)
    table.add_column("SHOOTS", justify="right", no_wrap=True)
    table.add_column("", width=BAR_WIDTH)
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
        width=BAR_WIDTH,
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


def progress_table(shoots: Sequence[ShootRow]) -> Table:
    """Shoots that are being worked on."""
    table = Table(box=box.SIMPLE_HEAD, expand=True, pad_edge=False, header_style="bold")
    for column in ("SHOOT", "SEED", "OPERATION"):
        table.add_column(column, no_wrap=True)
    table.add_column("", width=BAR_WIDTH)
    table.add_column("", ratio=1, no_wrap=True, overflow="ellipsis")
    busy = sorted(shoot for shoot in shoots if shoot.state in ("processing", "error", "deleting"))
    for shoot in busy[:SHOOT_ROWS]:
        table.add_row(
            f"{shoot.namespace}/{shoot.name}",
            shoot.seed,
            Text(f"{shoot.operation} {shoot.operation_state}".strip(), style=STATE_STYLES[shoot.state]),
            ProgressBar(total=100, completed=shoot.progress, width=BAR_WIDTH),
            Text(shoot.description, style="dim"),
        )
    if len(busy) > SHOOT_ROWS:
        table.add_row(f"… {len(busy) - SHOOT_ROWS} more", "", "", "", "")
    return table


def unplaced_table(shoots: Sequence[ShootRow], *, is_brief: bool = False) -> Table | None:
    """Shoots without a seed and why (in one line each, if brief); None when there is none."""
    unplaced = sorted(shoot for shoot in shoots if not shoot.seed)
    if not unplaced:
        return None
    table = Table(
        title=f"{len(unplaced)} shoots without a seed", title_justify="left", box=box.SIMPLE_HEAD, header_style="bold"
    )
    table.add_column("SHOOT", no_wrap=True)
    table.add_column("WHY", overflow="ellipsis" if is_brief else "fold", no_wrap=is_brief)
    for shoot in unplaced:
        table.add_row(f"{shoot.namespace}/{shoot.name}", _why(shoot))
    return table


def unplaced_lines(shoots: Sequence[ShootRow]) -> list[str]:
    """The same in lines."""
    unplaced = sorted(shoot for shoot in shoots if not shoot.seed)
    lines = [f"  {shoot.namespace}/{shoot.name}: {_why(shoot)}" for shoot in unplaced]
    return [f"{len(unplaced)} shoots without a seed:", *lines] if lines else []


def _why(shoot: ShootRow) -> str:
    return shoot.description.removeprefix("Failed to schedule Shoot: ") or "not decided yet"


def plain_line(scene: Scene) -> str:
    """The same in one line, for logs and pipes."""
    counts = Counter(shoot.state for shoot in scene.shoots)
    shown = ", ".join(f"{counts[state]} {state}" for state in STATE_STYLES if counts[state])
    ready = sum(seed.ready == "True" for seed in scene.seeds)
    down = [service.name for service in scene.services if service.state not in ("ready", "running")]
    trouble = f"; not ready: {', '.join(down)}" if down else ""
    return f"seeds {ready}/{len(scene.seeds)} ready; {len(scene.shoots)} shoots: {shown or 'none'}{trouble}"
