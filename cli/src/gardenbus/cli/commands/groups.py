"""Commands that have commands of their own: `rollout`, `simulate`."""

import typer

from gardenbus.cli.commands import decisions, sets, simulations, supposing
from gardenbus.cli.lazy import HELP_OPTIONS, help_of

rollout = typer.Typer(
    help="Look at the revisions of a set's templates, and go back to one.",
    no_args_is_help=True,
    add_completion=False,
    context_settings=HELP_OPTIONS,
)
simulate = typer.Typer(
    cls=simulations.DefaultGroup,
    add_completion=False,
    help=help_of(simulations.simulate),
    no_args_is_help=True,
    context_settings=HELP_OPTIONS,
    subcommand_metavar="[COMMAND] [ARGS]…",
)

for command in (sets.rollout_status, sets.rollout_history, sets.rollout_undo):
    rollout.command(command.__name__.removeprefix("rollout_"), help=help_of(command))(command)

simulate.command(simulations.WHAT_IF, help=help_of(supposing.what_if))(supposing.what_if)
simulate.command(simulations.LANDSCAPES, help=help_of(decisions.simulate_command))(decisions.simulate_command)
simulate.command("autoscaler", help=help_of(simulations.autoscaler))(simulations.autoscaler)
