"""`logs`: logs of the services, in the order of time."""

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, NamedTuple

import typer

from gardenbus.cli.client.resource_args import object_name
from gardenbus.cli.commands.options import Directory
from gardenbus.cli.local.directory import LandscapeDirectory, default_directory
from gardenbus.cli.logs.files import LogTail, log_sources, merged_lines
from gardenbus.cli.logs.lines import LineFilter, LogLine, parse_duration, pretty, raw_json, read_line
from gardenbus.cli.output.console import console, counted, errors, exit_codes, is_animated, print_error
from gardenbus.cli.output.terminal import flush, write_document, write_painted
from gardenbus.common.errors import BadRequest, Unavailable

STANDARD_INPUT = "-"
LEAST_WIDTH = 9
COMPOSE = "docker compose -f deploy/compose/compose.yaml logs --no-color"


class LogOutput(StrEnum):
    """Values of `-o`."""

    TEXT = "text"
    JSON = "json"


class LogsOptions(NamedTuple):
    """The options of `logs`."""

    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what comes, until Ctrl-C.")] = False
    since: Annotated[str, typer.Option("--since", help="Only what is younger: 90s, 5m, 2h, 1d.")] = ""
    tail: Annotated[int | None, typer.Option("--tail", min=0, help="Only the last so many lines.")] = None
    level: Annotated[str, typer.Option("--level", help="debug, info, warning (warn) or error, and what is worse.")] = (
        "debug"
    )
    trace: Annotated[str, typer.Option("--trace", help="Only this trace (its id, or how it begins).")] = ""
    shoot: Annotated[str, typer.Option("--shoot", help="Only about NAMESPACE/NAME, with its traces.")] = ""
    grep: Annotated[str, typer.Option("--grep", help="Only lines that match; a regular expression.")] = ""
    output: Annotated[LogOutput, typer.Option("-o", "--output", help="For people, or as written.")] = LogOutput.TEXT
    directory: Directory = None


def logs(
    services: Annotated[
        list[str] | None,
        typer.Argument(
            help="Whose (default: all): scheduler, scheduler-2, nats; `-` reads stdin.", metavar="[SERVICE]…"
        ),
    ] = None,
    *,
    options: LogsOptions,
) -> None:
    """Show the logs of the local landscape's services, merged by time; one shoot or trace through all of them.

    Where services run in containers, pipe their logs in: docker compose logs --no-color | gardenbus logs - --level
    warning

    Example: gardenbus logs scheduler gardenlet --shoot garden-dev/apollo --since 5m -f
    """
    wanted = services or []
    with exit_codes():
        youngest = datetime.now(UTC) - parse_duration(options.since) if options.since else None
        line_filter = LineFilter(
            level=options.level.lower(),
            since=youngest,
            trace=options.trace,
            grep=options.grep,
            shoot=object_name(options.shoot, "shoot"),
        )
        if STANDARD_INPUT in wanted:
            _show_piped(line_filter, options.tail, options.output)
            return
        chosen = options.directory or default_directory()
        files = LandscapeDirectory(chosen).logs
        if not files.is_dir():
            raise Unavailable(
                f"no logs in {chosen}: name a landscape with --dir, or pipe: {COMPOSE} | gardenbus logs -"
            )
        sources = log_sources(files, wanted)
        if not sources and not options.follow:
            raise BadRequest(f"there are no logs in {files} yet")
        appended = LogTail(files, wanted, sources)
        width = max([LEAST_WIDTH, *(len(source.name) for source in sources)])
        shown = _show(_last(filter(line_filter.matches, merged_lines(sources)), options.tail), options.output, width)
        if not shown and not options.follow:
            errors.print("no line fits")
        if options.follow:
            for batch in appended.batches():
                _show(filter(line_filter.matches, batch), options.output, width)


def _show_piped(line_filter: LineFilter, tail: int | None, output: LogOutput) -> None:
    """Show the lines of stdin; at the end, how many of them are no lines of a log."""
    unreadable = 0

    def lines() -> Iterator[LogLine]:
        nonlocal unreadable
        for raw in sys.stdin:
            if raw.strip():
                line = read_line(raw, "")
                unreadable += not line.is_readable
                yield line

    shown = _show(_last(filter(line_filter.matches, lines()), tail), output)
    if unreadable:
        print_error(f"{counted(unreadable, 'line')} could not be read (taken for level info, of no known time)")
    if not shown:
        errors.print("no line fits")


def _last(lines: Iterator[LogLine], count: int | None) -> Iterable[LogLine]:
    return lines if count is None else deque(lines, maxlen=count)


def _show(lines: Iterable[LogLine], output: LogOutput, width: int = LEAST_WIDTH) -> int:
    """Print lines; returns their number."""
    count = 0
    is_coloured = is_animated(console)
    zone = datetime.now().astimezone().tzinfo
    for line in lines:
        if output is LogOutput.JSON:
            write_document(f"{raw_json(line)}\n", is_json=True)
        else:
            write_painted(f"{pretty(line, width=width, is_coloured=is_coloured, zone=zone)}\n")
        count += 1
    flush()
    return count
