"""Commands that have commands of their own: `auth`, `rollout`, `simulate`."""

import typer

from gardenbus.cli.commands import auth as auth_commands
from gardenbus.cli.commands import seed_sets, simulate_autoscaler, simulate_comparison, simulate_files, what_if
from gardenbus.cli.lazy import HELP_OPTIONS, help_of, new_group

auth = new_group("Show what the landscape lets a user do, and who the current user is.")
rollout = new_group("Show the revisions of a set's templates, and roll back to one.")
simulate = typer.Typer(
    cls=simulate_autoscaler.DefaultGroup,
    add_completion=False,
    help=help_of(simulate_autoscaler.simulate),
    no_args_is_help=True,
    context_settings=HELP_OPTIONS,
    subcommand_metavar="[COMMAND] [ARGS]…",
)

auth.command("can-i", help=help_of(auth_commands.can_i))(auth_commands.can_i)
auth.command("whoami", help=help_of(auth_commands.whoami))(auth_commands.whoami)

for command in (seed_sets.rollout_status, seed_sets.rollout_history, seed_sets.rollout_undo):
    rollout.command(command.__name__.removeprefix("rollout_"), help=help_of(command))(command)

simulate.command(simulate_autoscaler.WHAT_IF, help=help_of(what_if.what_if))(what_if.what_if)
simulate.command(simulate_autoscaler.LANDSCAPES, help=help_of(simulate_files.simulate_command))(
    simulate_files.simulate_command
)
simulate.command("compare", help=help_of(simulate_comparison.compare))(simulate_comparison.compare)
simulate.command("autoscaler", help=help_of(simulate_autoscaler.autoscaler))(simulate_autoscaler.autoscaler)
