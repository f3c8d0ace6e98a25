"""`dashboard`: a link that lets one into the dashboard."""

from pathlib import Path
from typing import Annotated

import typer

from gardenbus.cli.commands.options import Directory
from gardenbus.cli.local.directory import LandscapeDirectory, default_directory, directory_option
from gardenbus.cli.output.console import Exit, errors, exit_codes, show_lines
from gardenbus.common.api.identity.principals import OPERATOR
from gardenbus.common.errors import NotFound
from gardenbus.diagnostics.login_tokens import LINK_LIFE


def dashboard(
    *,
    user: Annotated[str, typer.Option("--user", help="User who is logged in.")] = OPERATOR,
    opens: Annotated[bool, typer.Option("--open", help="Open it in a browser here.")] = False,
    url: Annotated[str | None, typer.Option("--url", help="Where the dashboard is, if not in --dir.")] = None,
    key_file: Annotated[
        Path | None, typer.Option("--key-file", help="The dashboard's key, if not that of --dir.")
    ] = None,
    directory: Directory = None,
) -> None:
    """Print a link that logs in to the dashboard: once, within a minute, for eight hours.

    Where nobody has to log in, it is the dashboard's address.

    Example: gardenbus dashboard --open
    """
    from gardenbus.cli.commands.issued import person  # noqa: PLC0415  slow to import

    with exit_codes():
        place = LandscapeDirectory(directory or default_directory())
        named = user if user == OPERATOR else person(user).name
        link = _link(url or _address(place), key_file or place.dashboard_key, named)
    show_lines([link])
    if "#" in link:
        errors.print(f"it logs {user} in once, within {LINK_LIFE.total_seconds():g} s", style="dim")
    if opens:
        import webbrowser  # noqa: PLC0415  nothing else needs it

        if not webbrowser.open(link):
            errors.print("no browser could be opened here", style="yellow")
            raise typer.Exit(Exit.FAILED)


def _address(place: LandscapeDirectory) -> str:
    landscape = place.read()
    found = next((each.url for each in landscape.services if each.name == "dashboard"), None) if landscape else None
    if not found:
        raise NotFound(
            f"no dashboard is known in {place.path}: `gardenbus up{directory_option(place.path)}`, or name one by --url"
        )
    return found


def _link(url: str, key_file: Path, user: str) -> str:
    from gardenbus.common.runtime.clock import SystemClock  # noqa: PLC0415  slow to import, as the next
    from gardenbus.diagnostics.login_keys import new_link, read_key  # noqa: PLC0415

    return new_link(read_key(key_file), SystemClock(), url, user) if key_file.exists() else url
