"""The gardenbus command: what commands there are, each a function in `commands`, imported when it is called."""

import contextlib
import os
import sys
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import typer
from typer._click.exceptions import ClickException, NoArgsIsHelpError

from gardenbus.cli.contexts.selection import RootContext
from gardenbus.cli.lazy import HELP_OPTIONS, Entry, LazyGroup
from gardenbus.cli.output.terminal import protect_streams, write, write_error
from gardenbus.common.api.terminal_text import escaped

COMPLETING = "_GARDENBUS_COMPLETE"
"""Variable in which a shell's completion script says what it wants."""

INTERRUPTED = 130
"""`output.Exit.INTERRUPTED`, which is not to be imported for it."""

ENDS = (
    "Exit codes: 0 done; 1 rejected, or not all of it was done; 2 usage: the words or files cannot be read, "
    "or the credentials are not accepted; 3 landscape unreachable; 130 Ctrl-C."
)

COMMANDS: Mapping[str, Entry] = {
    "up": Entry("", "Landscape", "Start a landscape: NATS, Redis and all services.", "embedded"),
    "down": Entry("", "Landscape", "Stop the landscape of a directory; its state stays.", "embedded"),
    "status": Entry("", "Landscape", "Show the processes of a landscape and their health.", "embedded"),
    "bench": Entry("", "Landscape", "Measure how fast this machine is.", "bench"),
    "get": Entry("get:get", "Objects", "Show objects, once or as they change."),
    "describe": Entry("describe:describe", "Objects", "Show an object in full, why it waits, and its Events."),
    "apply": Entry("apply:apply", "Objects", "Create or update objects from manifests."),
    "create": Entry("create:create", "Objects", "Create objects from manifests, unless they exist."),
    "replace": Entry("create:replace", "Objects", "Replace existing objects by manifests."),
    "diff": Entry("diff:diff", "Objects", "Show what apply would change."),
    "delete": Entry("apply:delete", "Objects", "Delete objects."),
    "edit": Entry("modify:edit", "Objects", "Change an object in an editor."),
    "patch": Entry("modify:patch", "Objects", "Change fields of objects."),
    "label": Entry("modify:label", "Objects", "Set or remove labels."),
    "annotate": Entry("modify:annotate", "Objects", "Set or remove annotations."),
    "api-resources": Entry(
        "api_resources:api_resources", "Objects", "Show which kinds there are, and what acts on them."
    ),
    "wait": Entry("wait:wait", "Objects", "Wait until objects are scheduled, reconciled, gone, and more."),
    "kubeconfig": Entry("kubeconfig:kubeconfig", "Objects", "Print a kubeconfig with which kubectl reaches a shoot."),
    "bind": Entry("bind:bind", "Placement", "Bind a waiting shoot to a seed, or move a placed one there."),
    "cordon": Entry("bind:cordon", "Placement", "Mark a seed as unschedulable."),
    "uncordon": Entry("bind:uncordon", "Placement", "Mark a seed as schedulable."),
    "drain": Entry("migrate:drain", "Placement", "Empty a seed: cordon it, then migrate its shoots."),
    "rebalance": Entry("migrate:rebalance", "Placement", "Plan migrations for seeds used alike."),
    "scale": Entry("seed_sets:scale", "Sets of seeds", "Set how many replicas a ManagedSeedSet shall have."),
    "rollout": Entry("groups:rollout", "Sets of seeds", "Show the revisions of a set's templates, and roll back."),
    "events": Entry("events:events", "Events", "Show the Events of the last 24 hours, the newest last."),
    "watch": Entry("events:watch", "Events", "Show changes of objects as they are announced."),
    "explain": Entry(
        "explain:explain", "Decisions", "Explain where a shoot or a placement is, or what a seed accepts."
    ),
    "simulate": Entry(
        "groups:simulate", "Decisions", "Simulate changes: other seeds, more shoots, files, days of an autoscaler."
    ),
    "queue": Entry("queue:queue", "Operating", "Show which shoots wait for a seed, why, and when they are tried."),
    "retry": Entry("queue:retry", "Operating", "Retry a shoot now: schedule it, or repeat its failed operation."),
    "adopt": Entry("unknown:adopt", "Operating", "Store a shoot again that its seed runs and the store does not know."),
    "forget": Entry("unknown:forget", "Operating", "Tear down what a seed runs and the store does not know."),
    "recovery": Entry(
        "recovery:recovery", "Operating", "Show which seeds a restored store waits for; go on without some."
    ),
    "rejected": Entry("rejected:rejected", "Operating", "Show rejected messages, and send them again."),
    "logs": Entry("logs:logs", "Operating", "Show the logs of the services; follow one shoot through all of them."),
    "dashboard": Entry("dashboard:dashboard", "Operating", "Print a link that logs in to the dashboard."),
    "token": Entry(
        "token:token", "Access", "Make, show and remove bootstrap tokens for new gardenlets and member agents."
    ),
    "certificate": Entry("certificate:certificate", "Access", "Approve and deny requests, revoke credentials."),
    "ca": Entry("ca:ca", "Access", "Rotate the certificate authority."),
    "doctor": Entry("doctor:doctor", "Operating", "Check a landscape, and suggest what to do."),
    "backup": Entry("backup:backup", "Operating", "Back the store up, look at backups, check them, restore one."),
    "redis-users": Entry("redis_users:redis_users", "Operating", "Write the users of a Redis, and their passwords."),
    "top": Entry("top:top", "Operating", "Show seeds, shoots, services or queues, kept current."),
    "auth": Entry("groups:auth", "Operating", "Show what the landscape lets a user do, and who the current user is."),
    "identity": Entry("identity:identity", "Operating", "Give people and agents credentials, and `nats` a context."),
    "login": Entry("login:login", "This command line", "Try credentials out, and keep them in a context."),
    "config": Entry("config:config", "This command line", "Keep several landscapes under names."),
    "version": Entry("version:version", "This command line", "Show the versions of client and services."),
    "completion": Entry("completion:completion", "This command line", "Print a completion script for a shell."),
}


class Commands(LazyGroup):
    """The commands of `gardenbus`."""

    entries: ClassVar[Mapping[str, Entry]] = COMMANDS
    has_plugins: ClassVar[bool] = True

    def main(self, *arguments: Any, standalone_mode: bool = True, **options: Any) -> Any:
        """Run a command; a usage error is one line where no person reads it at a terminal."""
        if not standalone_mode:
            return super().main(*arguments, standalone_mode=False, **options)
        try:
            code = super().main(*arguments, standalone_mode=False, **options)
        except typer.Abort:
            if sys.stderr.isatty():
                write_error("Aborted.\n")
            sys.exit(1)
        except ClickException as error:
            with contextlib.suppress(BrokenPipeError):
                show_usage_error(error)
            sys.exit(error.exit_code)
        sys.exit(code if isinstance(code, int) else 0)


def show_usage_error(error: ClickException) -> None:
    """Print a usage error: framed at a terminal, elsewhere in one line."""
    if sys.stderr.isatty():
        from typer.rich_utils import rich_format_error  # noqa: PLC0415  slow to import

        error.message = escaped(error.message)
        rich_format_error(error)
    elif text := usage_error(error):
        write_error(f"{text}\n")


def usage_error(error: ClickException) -> str:
    """The usage error of a call in one line; "" where its help was printed instead."""
    if isinstance(error, NoArgsIsHelpError):
        return ""
    context = getattr(error, "ctx", None)
    hint = f" (see: {context.command_path} --help)" if context is not None else ""
    return f"gardenbus: {' '.join(error.format_message().split())}{hint}"


app = typer.Typer(
    name="gardenbus",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings=HELP_OPTIONS,
    epilog=ENDS,
)


def _show_version(is_requested: bool) -> None:  # noqa: FBT001 - typer calls it with the option's value
    if is_requested:
        from importlib.metadata import version  # noqa: PLC0415  nothing else needs it

        write(f"gardenbus {version('gardenbus')}\n")
        raise typer.Exit


@app.callback()
def options(
    *,
    show_version: Annotated[
        bool, typer.Option("--version", help="Show the version and end.", callback=_show_version, is_eager=True)
    ] = False,
    context: RootContext = None,
) -> None:
    """Gardener's scheduling and seed management as services on NATS JetStream and Redis."""
    del show_version, context  # their callbacks did it


def main() -> None:
    """Run the command line, or print completions for a shell; ends the process with an `Exit` code."""
    if COMPLETING in os.environ:
        from typer._completion_classes import completion_init  # noqa: PLC0415  typer knows no shell before this

        completion_init()
    if os.environ.get("NO_COLOR"):
        from typer import rich_utils  # noqa: PLC0415  slow to import

        rich_utils.COLOR_SYSTEM = None
    sys.exit(run())


def run() -> int | str | None:
    """Run the command that the arguments name; returns its exit code.

    It is done, without a word, when nobody reads any more what it prints (`| head`).
    """
    code: int | str | None = 0
    for stream in (sys.stdout, sys.stderr):
        if (stream.encoding or "utf-8").lower().replace("-", "") != "utf8":
            from gardenbus.cli.output.plain_characters import print_plainly  # noqa: PLC0415  hardly anywhere needed

            print_plainly(stream)
    protect_streams()
    try:
        app()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        pass
    except SystemExit as ended:  # click and rich end the process with 1 where they meet a closed pipe
        code = 0 if ended.code == 1 and isinstance(ended.__context__, BrokenPipeError) else ended.code
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # the rest, at the end of the process
    return code


if __name__ == "__main__":
    main()
