"""Tables and lines about seeds and shoots that `top`, `get` and the screen of `up` have in common. Pure."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from rich import box
from rich.console import RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from gardenbus.common.api.garden.rows import SeedRow, ShootOperationState

SEED_ROWS = 20
BAR_WIDTH = 16
NEARLY_FULL = Fraction(9, 10)

STATE_STYLES: Mapping[ShootOperationState, str] = {
    "succeeded": "green",
    "processing": "cyan",
    "new": "white",
    "pending": "yellow",
    "error": "red",
    "failed": "bold red",
    "deleting": "magenta",
}


def seeds_table(seeds: Sequence[SeedRow], usage: Mapping[str, int], *, is_tight: bool = False) -> Table:
    """Seeds with readiness and used/allocatable; the bar gives way before a name does."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=not is_tight)
    for column in ("SEED", "PROVIDER", "REGION", "GARDENLET"):
        table.add_column(column, no_wrap=True)
    table.add_column("SHOOTS", justify="right", no_wrap=True)
    table.add_column("", max_width=BAR_WIDTH)
    shown = sorted(seeds, key=lambda seed: seed.name)[:SEED_ROWS]
    for seed in shown:
        used = usage.get(seed.name, 0)
        table.add_row(
            seed.name, seed.provider, seed.region, readiness(seed), used_of(used, seed.capacity), bar(used, seed)
        )
    if len(seeds) > len(shown):
        ready = sum(seed.ready == "True" for seed in seeds)
        table.add_row(f"… {len(seeds) - len(shown)} more", "", "", f"{ready}/{len(seeds)} ready", "", "")
    return table


def readiness(seed: SeedRow) -> Text:
    """Health of the gardenlet, in a word and a colour."""
    if seed.is_deleting:
        return Text("Deleting", style="magenta")
    words = {"True": ("Ready", "green"), "Unknown": ("Unknown", "red"), "": ("Not reported", "yellow")}
    word, style = words.get(seed.ready, (seed.reason or seed.ready, "red"))
    closed = "" if seed.is_visible else ", cordoned"
    if seed.ready == "True" and seed.lacks_backups:
        closed, style = f"{closed}, without backups", "yellow"
    return Text(word + closed, style=style)


def used_of(used: int | None, capacity: float | None) -> str:
    """`12/50`; without a limit the number alone; `-` for a number that is not known."""
    shown = "-" if used is None else str(used)
    if capacity is None:
        return shown
    return f"{shown}/{int(capacity) if capacity.is_integer() else round(capacity, 3)}"


def bar(used: int, seed: SeedRow) -> RenderableType:
    """Bar for the usage of a seed."""
    if not seed.capacity:
        return ""
    is_nearly_full = used >= Fraction(seed.capacity) * NEARLY_FULL
    return ProgressBar(
        total=seed.capacity, completed=used, complete_style="red" if is_nearly_full else "green", finished_style="red"
    )


def states_line(states: Mapping[ShootOperationState, int]) -> Text:
    """Numbers of shoots by state."""
    text = Text(f"{sum(states.values())} shoots", style="bold")
    for state, style in STATE_STYLES.items():
        if count := states.get(state):
            text.append(f"   {count} {state}", style=style)
    return text
