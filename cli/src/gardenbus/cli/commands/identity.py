"""`identity`: who takes part in a landscape, and their credentials."""

from typing import Annotated

import typer

from gardenbus.cli.client.targets import LandscapeTarget, credentials_of, find_landscape
from gardenbus.cli.commands.exported import export
from gardenbus.cli.commands.issued import issue, ls
from gardenbus.cli.commands.options import LandscapeOptions
from gardenbus.cli.contexts.nats_cli import write_nats_context
from gardenbus.cli.lazy import help_of, new_group
from gardenbus.cli.output.console import exit_codes, show_lines
from gardenbus.common.errors import BadRequest

identity = new_group("Who takes part in a landscape, and their credentials.")


def nats_context(
    *,
    name: Annotated[str, typer.Option("--name", help="Name of the context of `nats`.")] = "gardenbus",
    select: Annotated[bool, typer.Option("--select/--no-select", help="Make it the current one.")] = True,
    landscape: LandscapeOptions,
) -> None:
    """Write a context for the `nats` command: where NATS is, and the operator's user and password, or a context's.

    It is a file for its owner alone, below $XDG_CONFIG_HOME/nats or ~/.config/nats. After `up --fresh` the password is
    another one: write it again.

    Example: gardenbus identity nats-context
    """
    with exit_codes():
        where = find_landscape(*landscape)
        file = write_nats_context(name, _settings(where), is_selected=select)
    show_lines([f"{file}: nats context {'selected' if select else f'written; nats context select {name}'}"])


def _settings(where: LandscapeTarget) -> dict[str, str]:
    """The fields of the context. Raises BadRequest where `nats` has no field for the credentials."""
    common = {"url": where.nats_url, "ca": where.ca or ""}
    own = credentials_of(where)
    if own.token is not None:
        raise BadRequest(
            f"{where.credentials}: user and password or an nkey go into a context of `nats`, no certificate"
        )
    if own.nkey is not None:
        return {**common, "nkey": str(where.credentials), "inbox_prefix": own.inbox}
    login = own.login() if own.login is not None else None
    if login is None:
        return common
    inbox = {"inbox_prefix": own.inbox} if own.is_outsider else {}
    return {**common, "user": login.user, "password": login.password, **inbox}


for _command in (issue, ls, export, nats_context):
    identity.command(_command.__name__.replace("_", "-"), help=help_of(_command))(_command)
