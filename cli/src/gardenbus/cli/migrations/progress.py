"""Progress of migrations: bars on a terminal, a line for each event elsewhere."""

import contextlib
from collections.abc import Generator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column

from gardenbus.cli.migrations.runner import MigrationEvent
from gardenbus.cli.output.console import is_animated
from gardenbus.common.api.garden.moves import Move


class MigrationProgress:
    """Display of migration events. `expect` sets their total."""

    def __init__(self, console: Console, progress: Progress, title: str) -> None:
        self._console = console
        self._progress = progress
        self._all = progress.add_task(title, total=None, words="")
        self._moving: dict[Move, TaskID] = {}
        self._ended = 0

    def expect(self, more: int) -> None:
        """Set the number of migrations that are ahead."""
        self._progress.update(self._all, total=self._ended + more)

    def on_event(self, event: MigrationEvent) -> None:
        """Show one event."""
        name = f"{event.move.namespace}/{event.move.name}"
        way = f"{event.move.source} → {event.move.target}"
        match event.stage:
            case "begun":
                self._moving[event.move] = self._progress.add_task(f"  {name}", total=100, words=way)
                self._print(f"{name} moves {way}")
            case "going":
                task = self._moving.get(event.move)
                if task is not None:
                    self._progress.update(task, completed=event.percent, words=f"→ {event.move.target}  {event.words}")
            case "done" | "gone":
                self._ended += 1
                task = self._moving.pop(event.move, None)
                if task is not None:
                    self._progress.remove_task(task)
                self._progress.update(self._all, completed=self._ended)
                is_done = event.stage == "done"
                end = f"has moved {way} in {event.seconds:.1f} s" if is_done else "is not there to be moved any more"
                self._print(f"{name} {end}")

    def _print(self, text: str) -> None:
        if is_animated(self._console):
            self._progress.console.print(text)
        else:
            self._console.print(text, soft_wrap=True)


@contextlib.contextmanager
def shown_progress(console: Console, title: str) -> Generator[MigrationProgress]:
    """Show migrations while the block runs."""
    progress = Progress(
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
        BarColumn(bar_width=16, table_column=Column(no_wrap=True)),
        MofNCompleteColumn(table_column=Column(no_wrap=True)),
        TimeElapsedColumn(table_column=Column(no_wrap=True)),
        # What is said may be long: it has what the others leave, and the rest of it is cut off.
        TextColumn(
            "{task.fields[words]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)
        ),
        console=console,
        expand=True,
        disable=not is_animated(console),
        transient=True,
    )
    with progress:
        yield MigrationProgress(console, progress, title)
