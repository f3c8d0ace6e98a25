"""`identity export`: accounts and keys of a small fixed fleet, for a server without auth callout."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from gardenbus.cli.client.targets import DEFAULT_PREFIX
from gardenbus.cli.commands.issued import person
from gardenbus.cli.output.console import exit_codes, show_lines
from gardenbus.common.api.identity.names import issued
from gardenbus.common.api.identity.principals import Principal, Role
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import BadRequest

OptionalNames = list[str] | None


def export(  # noqa: PLR0913 - one parameter an option
    target: Annotated[Path, typer.Argument(help="Directory to write to.", metavar="DIRECTORY")],
    *,
    seed: Annotated[OptionalNames, typer.Option("--seed", help="For the gardenlet of this seed (any number).")] = None,
    member: Annotated[OptionalNames, typer.Option("--member", help="For the agent of this member cluster.")] = None,
    user: Annotated[OptionalNames, typer.Option("--user", help="For this person or program.")] = None,
    scheduler: Annotated[OptionalNames, typer.Option("--scheduler", help="For a scheduler of one's own.")] = None,
    extension: Annotated[
        OptionalNames, typer.Option("--extension", help="For the extension of this seed's backend nats.")
    ] = None,
    plugin: Annotated[OptionalNames, typer.Option("--plugin", help="For a plug-in of schedulers of this name.")] = None,
    prefix: Annotated[str, typer.Option("--prefix", help="First token of all subjects.")] = DEFAULT_PREFIX,
) -> None:
    """Write accounts of nats.conf and an nkey for each of a small fixed fleet, which then needs no auth callout.

    The accounts and the permissions are those of every landscape. Keys that are there stay; a further name adds one,
    and whose file is removed is nobody any more. Have the server read it anew each time: nats-server --signal reload.

    Examples:
    gardenbus identity export fleet --seed north --seed south --user ann
    """
    from gardenbus.cli.local.static_fleet import ACCOUNTS, USERS  # noqa: PLC0415  slow to import
    from gardenbus.cli.local.static_fleet import export as write  # noqa: PLC0415

    with exit_codes():
        names: list[tuple[Role, Sequence[str]]] = [("gardenlet", seed or ()), ("member-agent", member or ())]
        names.append(("scheduler", scheduler or ()))
        names.append(("extension", extension or ()))
        names.append(("plugin", plugin or ()))
        wanted = [issued(Principal(role, name).user) for role, given in names for name in given]
        wanted += [person(name) for name in user or ()]
        try:
            found = write(target, wanted, Subjects(prefix))
        except OSError as error:
            raise BadRequest(f"{error.filename or target}: {error.strerror}") from error
    lines = [f"{file}: {who.user}" for who, file in sorted(found.items())]
    show_lines(
        [
            *lines,
            f'nats.conf: include "{target.name}/{ACCOUNTS}" (the path is relative to nats.conf)',
            f"apiserver: GARDENBUS_STATIC_USERS={target / USERS}",
            f"each service: GARDENBUS_NATS_CREDENTIALS={target / 'services'}/<name>.nk",
        ]
    )
