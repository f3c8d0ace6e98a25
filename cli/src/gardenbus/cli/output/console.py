"""Output of commands: tables for people, JSON, YAML and names for programs; and exit codes.

How they end stands in `Exit`, and in the last lines of `gardenbus --help`.
"""

import contextlib
import io
import os
import sys
from collections.abc import Generator, Sequence
from enum import IntEnum, StrEnum
from typing import Any, Literal

import msgspec
import typer
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table

from gardenbus.cli.client.api_error import ApiError
from gardenbus.cli.output.terminal import write, write_document
from gardenbus.cli.output.terminal_console import TerminalConsole
from gardenbus.common.api.kinds import UNKNOWN_KIND
from gardenbus.common.errors import BadRequest, CredentialsRejected, GardenbusError, SettingsInvalid, Unavailable

PIPED_WIDTH = 400
"""Columns where no terminal limits them, so that nothing is cut for grep and awk."""

LEAST_LAST_WIDTH = 20
"""Least width of a table's last column, on a terminal that is too narrow for it."""

_BOUNDLESS = 1_000_000

NO_COLOR = bool(os.environ.get("NO_COLOR"))
"""Set by the user: no escapes at all, neither colours nor bold nor movements of the cursor (no-color.org)."""

_COLOURS: Literal["auto"] | None = None if NO_COLOR else "auto"


class ErrorConsole(TerminalConsole):
    """A console for errors; whether anybody reads them does not change how the command ends."""

    def on_broken_pipe(self) -> None:
        """Print nothing any more."""
        self.quiet = True


console = TerminalConsole(width=None if sys.stdout.isatty() else PIPED_WIDTH, color_system=_COLOURS)
errors = ErrorConsole(stderr=True, soft_wrap=True, color_system=_COLOURS)


class Exit(IntEnum):
    """Exit codes; scripts rely on these numbers."""

    DONE = 0
    FAILED = 1
    """The landscape said no, or not all of it was done: not there, conflict, invalid, not yet (`wait`)."""
    USAGE = 2
    """Nothing was requested: the words, a file or an expression cannot be read, or the credentials are not accepted."""
    OUT_OF_REACH = 3
    """No response came in time; what became of a write is unknown."""
    INTERRUPTED = 130
    """Ctrl-C."""


class Format(StrEnum):
    """Values of `-o`."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


PROGRAMS = (Format.JSON, Format.YAML)
"""Those of whole documents, for programs."""


def is_animated(on: Console) -> bool:
    """True where pictures may be drawn over: on a terminal that takes escapes."""
    return on.is_terminal and on.color_system is not None


def show(renderable: RenderableType) -> None:
    """Print a table or text."""
    console.print(renderable)


def new_table(*titles: str, folded: str | None = None) -> Table:
    """An empty table. A title that begins with `>` is a column of numbers; the last one, `folded`, may be long."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for title in titles:
        table.add_column(title.removeprefix(">"), no_wrap=True, justify="right" if title.startswith(">") else "left")
    if folded is not None:
        table.add_column(folded, overflow="fold")
    return table


def show_rows(table: Table) -> None:
    """Print a table row by row, each column but the last in full; see `rows_text` where there is no terminal."""
    if not console.is_terminal:
        write(rows_text(table))
        return
    before = console.width
    console.width = fit_last_column(table, before)
    try:
        console.print(table, crop=False)
    finally:
        console.width = before


def rows_text(table: Table, terminal_width: int | None = None) -> str:
    """A table as plain text: every row in full, or with the last column cut so that it fits a terminal."""
    if terminal_width is None:
        table.box = None  # no rule as long as the longest rejection
    width = _full_width(table) if terminal_width is None else fit_last_column(table, terminal_width)
    text_console = TerminalConsole(width=width, file=io.StringIO(), color_system=None, force_terminal=False)
    with text_console.capture() as capture:
        text_console.print(table, crop=False)
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def fit_last_column(table: Table, terminal_width: int) -> int:
    """Narrow a table's last column as far as the others need the room; returns the width to print it in.

    That is wider than the terminal where even so the others do not fit: a wrapped row is better than a missing name.
    """
    full = _full_width(table)
    if not table.columns or full <= terminal_width:
        return terminal_width
    last = table.columns[-1]
    console_of_any_width = TerminalConsole(width=_BOUNDLESS, file=io.StringIO())
    cells = [*last.cells, table.columns[-1].header]
    needed = max(console_of_any_width.measure(cell).maximum for cell in cells)
    last.width = min(needed, max(LEAST_LAST_WIDTH, needed - (full - terminal_width)))
    return max(terminal_width, full - needed + last.width)


def _full_width(table: Table) -> int:
    return TerminalConsole(width=_BOUNDLESS, file=io.StringIO()).measure(table).maximum


def show_document(document: Any, chosen: Format) -> None:
    """Print a value as JSON or YAML."""
    if chosen is Format.YAML:
        write_document(yaml_text(document))
    else:
        write_document(json_text(document), is_json=True)


def printed(output: Format, document: Any, names: Sequence[str]) -> bool:
    """Print what programs read, a document or names; False where `output` is for people, and nothing is printed."""
    if output in PROGRAMS:
        show_document(document, output)
    elif output is Format.NAME:
        show_lines(names)
    return output in (*PROGRAMS, Format.NAME)


def json_text(document: Any) -> str:
    """A value as JSON, indented; several below each other are what jq and kubectl print and read."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def yaml_text(document: Any) -> str:
    """A value as YAML, its fields in their order."""
    import yaml  # noqa: PLC0415  tables need not pay for it

    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True)


def show_lines(lines: Sequence[str]) -> None:
    """Print plain lines, uncut."""
    write("".join(f"{line}\n" for line in lines))


def print_error(message: str) -> None:
    """Print an error to stderr."""
    errors.print(f"gardenbus: {message}", style="red")


def print_watch_restarted() -> None:
    """Warn that a watch was cut and continues."""
    errors.print("the watch was cut and goes on; changes meanwhile may be missing", style="yellow")


def print_api_error(error: dict[str, Any], about: str = "") -> None:
    """Print an error of the API, and the fields that its message does not name; a line each for several.

    What it is about comes first, unless the message that is printed begins with it.
    """
    message, reason, prefix = str(error.get("message")), error.get("reason"), f"{about}: " if about else ""
    details = [f"{detail.get('field')}: {detail.get('message')}" for detail in error.get("details") or ()]
    if about and details and message.endswith(f" is invalid: {'; '.join(details)}"):
        print_error(f"{prefix}{reason}: {details[0]}" if len(details) == 1 else f"{prefix}{reason}")
        named = details if len(details) > 1 else []
    else:
        names_it = message.casefold().startswith((f"{about} ".casefold(), f"{about}:".casefold()))
        print_error(f"{reason}: {message}" if names_it else f"{prefix}{reason}: {message}")
        named = [each for each in details if each not in message]
    for each in named:
        errors.print(f"  {each}")


def fail_unless(is_done: bool) -> None:  # noqa: FBT001  a predicate, as of `assert`
    """End with the exit code for what was rejected, or not done as a whole."""
    if not is_done:
        raise typer.Exit(Exit.FAILED)


def counted(number: int, what: str) -> str:
    """`1 move`, `2 moves`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


@contextlib.contextmanager
def exit_codes() -> Generator[None]:
    """Turn errors into messages and exit codes."""
    try:
        yield
    except ApiError as error:
        print_api_error(error.error)
        is_usage = str(error.error.get("message")).startswith(UNKNOWN_KIND)
        raise typer.Exit(Exit.USAGE if is_usage else Exit.FAILED) from error
    except CredentialsRejected as error:
        print_error(error.message)
        raise typer.Exit(Exit.USAGE) from error
    except Unavailable as error:
        print_error(error.message)
        raise typer.Exit(Exit.OUT_OF_REACH) from error
    except BadRequest as error:
        print_error(error.message)
        raise typer.Exit(Exit.USAGE) from error
    except SettingsInvalid as error:
        for problem in error.problems:
            print_error(problem)
        raise typer.Exit(Exit.USAGE) from error
    except GardenbusError as error:
        print_error(error.message)
        raise typer.Exit(Exit.FAILED) from error
