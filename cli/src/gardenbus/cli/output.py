"""What commands print: tables for people, JSON, YAML and names for programs; and how they end.

Exit codes: 0 done, 1 refused, 2 usage, 3 landscape out of reach.
"""

import contextlib
import sys
from collections.abc import Generator, Sequence
from enum import IntEnum, StrEnum
from typing import Any

import msgspec
import typer
import yaml
from rich.console import Console, RenderableType

from gardenbus.common.errors import BadRequest, GardenbusError, SettingsInvalid, Unavailable

PIPED_WIDTH = 400
"""Columns where no terminal limits them, so that nothing is cut for grep and awk."""

console = Console(highlight=False, width=None if sys.stdout.isatty() else PIPED_WIDTH)
errors = Console(stderr=True, highlight=False, soft_wrap=True)


class Exit(IntEnum):
    """How a command ends."""

    DONE = 0
    REFUSED = 1
    USAGE = 2
    OUT_OF_REACH = 3


class Format(StrEnum):
    """What `-o` takes."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


class RefusedByApi(GardenbusError):
    """The landscape answered no; `error` is what it said."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(str(error.get("message") or error))
        self.error = error


def show(renderable: RenderableType) -> None:
    """Print a table or text."""
    console.print(renderable)


def show_document(document: Any, chosen: Format) -> None:
    """Print a value as JSON or YAML."""
    if chosen is Format.YAML:
        sys.stdout.write(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))
    else:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n")


def show_lines(lines: Sequence[str]) -> None:
    """Print plain lines, uncut."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def say_error(message: str) -> None:
    """Print an error to stderr."""
    errors.print(f"gardenbus: {message}", style="red", markup=False)


def say_refusal(error: dict[str, Any], about: str = "") -> None:
    """Print a refusal with the fields at fault."""
    prefix = f"{about}: " if about else ""
    say_error(f"{prefix}{error.get('reason')}: {error.get('message')}")
    for detail in error.get("details") or ():
        errors.print(f"  {detail.get('field')}: {detail.get('message')}", markup=False)


@contextlib.contextmanager
def exit_codes() -> Generator[None]:
    """Turn errors into messages and exit codes."""
    try:
        yield
    except RefusedByApi as refusal:
        say_refusal(refusal.error)
        raise typer.Exit(Exit.REFUSED) from refusal
    except Unavailable as error:
        say_error(error.message)
        raise typer.Exit(Exit.OUT_OF_REACH) from error
    except BadRequest as error:
        say_error(error.message)
        raise typer.Exit(Exit.USAGE) from error
    except SettingsInvalid as error:
        for problem in error.problems:
            say_error(problem)
        raise typer.Exit(Exit.USAGE) from error
    except GardenbusError as error:
        say_error(error.message)
        raise typer.Exit(Exit.REFUSED) from error
    except BrokenPipeError as error:
        sys.stderr.close()
        raise typer.Exit(Exit.DONE) from error
