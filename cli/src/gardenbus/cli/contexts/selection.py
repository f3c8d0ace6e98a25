"""`--context`: which of the landscapes in the config file a command is about.

It can stand before the command and behind it. Imports nothing that takes time: every command has it. Its value is kept
beside the call, not handed through it: so all commands that use a landscape have the option, and none has to know it.
"""

from contextvars import ContextVar
from typing import Annotated, Any

import typer
from typer.main import get_command_from_info
from typer.models import CommandInfo

selected_context: ContextVar[str | None] = ContextVar("chosen", default=None)
"""The context that this call names."""

HELP = (
    "The landscape of this name in the config file. What counts: --nats-url, --dir or --context; "
    "then GARDENBUS_NATS_URL; then GARDENBUS_DIR; then the file's current context; then ./.gardenbus."
)


def _complete(incomplete: str) -> list[str]:
    from gardenbus.cli.contexts.config import context_names  # noqa: PLC0415  only for completion

    return context_names(incomplete)


def _select(ctx: typer.Context, context: str | None) -> None:
    if context is None:
        return
    selected_context.set(context)
    if not ctx.resilient_parsing:  # while completing, the call is parsed to its end before what may follow is requested
        ctx.find_root().call_on_close(lambda: selected_context.set(None))


RootContext = Annotated[str | None, typer.Option("--context", help=HELP, callback=_select, autocompletion=_complete)]
"""Before the command."""


def context_option() -> Any:
    """The option for one more command; its value goes to `chosen`, not to the command's function."""

    def alone(
        *,
        context: Annotated[
            str | None,
            typer.Option("--context", help=HELP, callback=_select, autocompletion=_complete, expose_value=False),
        ] = None,
    ) -> None:
        del context

    info = CommandInfo("context", callback=alone)
    return get_command_from_info(info, pretty_exceptions_short=False, rich_markup_mode="rich").params[0]
