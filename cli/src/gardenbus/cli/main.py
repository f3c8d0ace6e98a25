"""The gardenbus command: what commands there are. Each is a function in `commands`."""

import sys
from collections.abc import Callable
from importlib.metadata import version
from inspect import getdoc
from typing import Annotated

import typer

from gardenbus.cli.commands import (
    benchmarks,
    decisions,
    landscape,
    migrating,
    news,
    objects,
    placing,
    sets,
    simulations,
)
from gardenbus.cli.output import Exit

HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    name="gardenbus",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings=HELP_OPTIONS,
)
rollout = typer.Typer(
    help="Look at the revisions of a set's templates, and go back to one.",
    no_args_is_help=True,
    context_settings=HELP_OPTIONS,
)
simulate = typer.Typer(
    cls=simulations.DefaultGroup,
    help="Say offline where the pending shoots of each FILE would go, or how an autoscaler would fare.",
    context_settings=HELP_OPTIONS,
    subcommand_metavar="FILE… | COMMAND [ARGS]…",
)


def help_of(command: Callable[..., None]) -> str:
    """A command's docstring, each paragraph in one line: it is wrapped where it is shown."""
    return "\n\n".join(paragraph.replace("\n", " ") for paragraph in (getdoc(command) or "").split("\n\n"))


simulate.command(simulations.LANDSCAPES)(decisions.simulate_command)
simulate.command("autoscaler", help=help_of(simulations.autoscaler))(simulations.autoscaler)
for command in (landscape.up, landscape.down, landscape.status):
    app.command(rich_help_panel="Landscape")(command)
for command in (objects.apply, objects.get, objects.describe, objects.delete):
    app.command(rich_help_panel="Objects")(command)
for command in (placing.bind, placing.cordon, placing.uncordon, migrating.drain, migrating.rebalance):
    app.command(help=help_of(command), rich_help_panel="Placement")(command)
app.command(help=help_of(sets.scale), rich_help_panel="Sets of seeds")(sets.scale)
for command in (sets.rollout_status, sets.rollout_history, sets.rollout_undo):
    rollout.command(command.__name__.removeprefix("rollout_"), help=help_of(command))(command)
app.add_typer(rollout, name="rollout", rich_help_panel="Sets of seeds")
for command in (news.events, news.watch):
    app.command(rich_help_panel="News")(command)
app.command(rich_help_panel="Decisions")(decisions.explain)
app.add_typer(simulate, name="simulate", rich_help_panel="Decisions")
app.command(rich_help_panel="Decisions")(decisions.top)
app.command(help=help_of(benchmarks.bench), rich_help_panel="Landscape")(benchmarks.bench)


def _show_version(is_asked: bool) -> None:  # noqa: FBT001 - typer calls it with the option's value
    if is_asked:
        typer.echo(f"gardenbus {version('gardenbus-cli')}")
        raise typer.Exit(Exit.DONE)


@app.callback()
def options(
    *,
    show_version: Annotated[
        bool, typer.Option("--version", help="Show the version and end.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Gardener's scheduling and seed management as services on NATS JetStream and Redis."""
    del show_version  # its callback did it


def main() -> None:
    """Run the command line; ends the process with an `Exit` code."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(Exit.DONE)


if __name__ == "__main__":
    main()
