"""Options that several commands share."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, NamedTuple, TypeVar

import typer

from gardenbus.cli import completions
from gardenbus.cli.client.api import ApiClient, connected
from gardenbus.cli.client.targets import find_landscape
from gardenbus.cli.output.console import Format, exit_codes
from gardenbus.cli.output.printers import WAYS
from gardenbus.common.api.durations import parse_duration
from gardenbus.common.api.field_validation import FieldValidation, parse_field_validation
from gardenbus.common.errors import BadRequest
from gardenbus.common.runtime import event_loop

Result = TypeVar("Result")

Directory = Annotated[
    Path | None,
    typer.Option("--dir", help="State directory of the landscape (default: GARDENBUS_DIR, else ./.gardenbus)."),
]
NatsUrlOption = Annotated[str | None, typer.Option("--nats-url", help="Where NATS is, instead of a state directory.")]
PrefixOption = Annotated[str | None, typer.Option("--prefix", help="First token of all subjects (default: garden).")]
Output = Annotated[Format, typer.Option("-o", "--output", help="How objects are printed.")]
Namespace = Annotated[
    str | None,
    typer.Option("-n", "--namespace", help="Namespace (default: all).", autocompletion=completions.namespaces),
]
AllNamespaces = Annotated[bool, typer.Option("-A", "--all-namespaces", help="In all namespaces, as without -n.")]
AnyOutput = Annotated[
    str,
    typer.Option(
        "-o",
        "--output",
        help=f"How objects are printed: {', '.join(WAYS)}.",
        metavar="WAY",
        autocompletion=completions.outputs,
    ),
]
"""As `Output`, and templates; read by `printing.parse_printing`."""
Selector = Annotated[
    str, typer.Option("-l", "--selector", help="Only with these labels: a=b,c!=d,e in (f,g),h,!i.", metavar="LABELS")
]
FieldSelector = Annotated[
    str,
    typer.Option(
        "--field-selector",
        help="Only with these fields, any by its path: spec.seedName=aws,status.seedName!=aws.",
        metavar="FIELDS",
    ),
]
DryRun = Annotated[
    str | None,
    typer.Option("--dry-run", help="server: return what would be written, and write nothing.", metavar="server|none"),
]
Validate = Annotated[
    str,
    typer.Option(
        "--validate",
        help="Fields that the kind does not have: strict (or true) rejects them, warn, ignore (or false).",
        metavar="strict|warn|ignore",
    ),
]
Timeout = Annotated[str, typer.Option("--timeout", help="How long to wait, as 90s or 10m.", metavar="DURATION")]
Files = Annotated[list[Path], typer.Option("-f", "--filename", help="File or folder of manifests, `-` for stdin.")]


class LandscapeOptions(NamedTuple):
    """The options that say which landscape is meant; a command with one such parameter has all of them."""

    directory: Directory = None
    nats_url: NatsUrlOption = None
    prefix: PrefixOption = None


def run_with_client(
    work: Callable[[ApiClient], Awaitable[Result]], directory: Path | None, nats_url: str | None, prefix: str | None
) -> Result:
    """Connect to the landscape that is meant, do the work, and end with the exit code for what went wrong."""

    async def run() -> Result:
        async with connected(find_landscape(directory, nats_url, prefix)) as api:
            return await work(api)

    with exit_codes():
        return event_loop.run(run())


def check_namespaces(namespace: str | None, *, all_namespaces: bool) -> None:
    """Raise BadRequest where one namespace is given, and all of them too."""
    if all_namespaces and namespace:
        raise BadRequest("-A is for all namespaces, -n for one: give one of them")


def is_dry_run(text: str | None) -> bool:
    """Read the value of `--dry-run`. Raises BadRequest: there is none of the client's, it knows no rules."""
    if text not in (None, "none", "server"):
        raise BadRequest(f"--dry-run={text}: server or none; only the server knows what it would take")
    return text == "server"


def validation_of(text: str) -> FieldValidation:
    """Read the value of `--validate`. Raises BadRequest."""
    return parse_field_validation(text, name="--validate")


def seconds_of(text: str) -> float:
    """Read a duration. Raises BadRequest."""
    try:
        return parse_duration(text).total_seconds()
    except ValueError as error:
        raise BadRequest(f"--timeout: {error}") from error
