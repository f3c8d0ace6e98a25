"""How migrations are shown while they run: bars on a terminal, a line for each event elsewhere."""

import contextlib
from collections.abc import Generator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column

from gardenbus.cli.migrations import News
from gardenbus.scheduling.moving import Move


class Journey:
    """Hears the news of migrations. `expect` says how many there are to be in all."""

    def __init__(self, console: Console, progress: Progress, title: str) -> None:
        self._console = console
        self._progress = progress
        self._all = progress.add_task(title, total=None, words="")
        self._moving: dict[Move, TaskID] = {}
        self._ended = 0

    def expect(self, more: int) -> None:
        """So many are ahead from now on."""
        self._progress.update(self._all, total=self._ended + more)

    def hear(self, news: News) -> None:
        """Show one piece of news."""
        name = f"{news.move.namespace}/{news.move.name}"
        way = f"{news.move.source} → {news.move.target}"
        match news.stage:
            case "begun":
                self._moving[news.move] = self._progress.add_task(f"  {name}", total=100, words=way)
                self._line(f"{name} moves {way}")
            case "going":
                task = self._moving.get(news.move)
                if task is not None:
                    self._progress.update(task, completed=news.percent, words=f"→ {news.move.target}  {news.words}")
            case "done" | "gone":
                self._ended += 1
                task = self._moving.pop(news.move, None)
                if task is not None:
                    self._progress.remove_task(task)
                self._progress.update(self._all, completed=self._ended)
                is_done = news.stage == "done"
                end = f"has moved {way} in {news.seconds:.1f} s" if is_done else "is not there to be moved any more"
                self._line(f"{name} {end}")

    def _line(self, text: str) -> None:
        if self._console.is_terminal:
            self._progress.console.print(text, markup=False)
        else:
            self._console.print(text, markup=False, soft_wrap=True)


@contextlib.contextmanager
def journey(console: Console, title: str) -> Generator[Journey]:
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
        disable=not console.is_terminal,
        transient=True,
    )
    with progress:
        yield Journey(console, progress, title)
