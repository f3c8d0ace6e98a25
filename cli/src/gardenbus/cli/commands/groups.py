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
    help="Say what a change would do, where the pending shoots and the placements of each FILE would go, or how an "
    "autoscaler would fare.",
    context_settings=HELP_OPTIONS,
    subcommand_metavar="[OPTIONS of what-if] | FILE… | COMMAND [ARGS]…",
)

for command in (sets.rollout_status, sets.rollout_history, sets.rollout_undo):
    rollout.command(command.__name__.removeprefix("rollout_"), help=help_of(command))(command)

simulate.command(simulations.LANDSCAPES)(decisions.simulate_command)
simulate.command(simulations.WHAT_IF, help=help_of(supposing.what_if))(supposing.what_if)
simulate.command("autoscaler", help=help_of(simulations.autoscaler))(simulations.autoscaler)
