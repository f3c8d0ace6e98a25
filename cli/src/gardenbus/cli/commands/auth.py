"""`auth can-i`, `auth whoami`: what the landscape lets this user do, and who it takes the user for."""

from typing import Annotated, Any

import typer

from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.commands.options import LandscapeOptions, run_with_client
from gardenbus.cli.output.console import Format, exit_codes, fail_unless, show_document, show_lines
from gardenbus.cli.output.printers import table_text
from gardenbus.common.errors import BadRequest

SUBRESOURCES = ("binding", "scale")
NO = "no"


def can_i(
    words: Annotated[list[str] | None, typer.Argument(metavar="VERB [KIND[/NAME]]", help="get shoots/apollo")] = None,
    *,
    namespace: Annotated[str | None, typer.Option("-n", "--namespace", help="Namespace (default: all).")] = None,
    user: Annotated[str, typer.Option("--as", help="Check another user, as an operator.", metavar="USER")] = "",
    lists: Annotated[bool, typer.Option("--list", help="All that is allowed, on objects of any name.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing; only set the exit code.")] = False,
    landscape: LandscapeOptions,
) -> None:
    """Check whether a request would be allowed: yes, or no (and exit code 1).

    Besides verbs on kinds there are requests about the landscape, as census, and subresources: create shoots/binding.

    Example: gardenbus auth can-i create shoots -n garden-dev --as ann
    """
    given = words or []
    with exit_codes():
        if lists == bool(given) or len(given) > 2:  # noqa: PLR2004 - a verb and a kind
            raise BadRequest("gardenbus auth can-i VERB [KIND[/NAME]], or --list")
    review = _review(given, namespace, user)

    async def work(api: ApiClient) -> Any:
        return await api.call("can-i", review)

    result = run_with_client(work, *landscape)
    if lists:
        rows = [(rule["kind"], f"[{' '.join(rule['verbs'])}]") for rule in result["rules"]]
        show_lines(table_text(("Resources", "Verbs"), rows).splitlines())
        return
    if not quiet:
        decision = "yes" if result["allowed"] else NO
        show_lines([f"{decision} - {result['reason']}" if result["reason"] else decision])
    fail_unless(result["allowed"])


def whoami(
    *,
    output: Annotated[Format | None, typer.Option("-o", "--output", help="json or yaml.")] = None,
    landscape: LandscapeOptions,
) -> None:
    """Show the current user, with groups and role.

    Example: gardenbus auth whoami
    """
    with exit_codes():
        if output not in (None, Format.JSON, Format.YAML):
            raise BadRequest(f"-o {output}: json or yaml")

    async def work(api: ApiClient) -> Any:
        return await api.call("whoami")

    found = run_with_client(work, *landscape)
    if output is not None:
        show_document(found, output)
        return
    rows = [("Username", found["user"]), ("Groups", f"[{' '.join(found['groups'])}]"), ("Role", found["role"])]
    show_lines(table_text(("ATTRIBUTE", "VALUE"), rows).splitlines())


def _review(words: list[str], namespace: str | None, user: str) -> dict[str, str]:
    """The body of the request; the verb alone is about the landscape."""
    verb, kind = (*words, "", "")[:2]
    word, _, name = kind.partition("/")
    if name in SUBRESOURCES:
        word, name = kind.lower(), ""
    review = {"verb": verb, "kind": word, "name": name, "namespace": namespace or "", "user": user}
    return {field: value for field, value in review.items() if value}
