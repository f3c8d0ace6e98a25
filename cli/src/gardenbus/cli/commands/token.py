"""`token`: bootstrap tokens, by which new gardenlets and member agents request their certificate."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from gardenbus.cli import completions
from gardenbus.cli.client.api import ApiClient, api_error
from gardenbus.cli.commands.options import LandscapeOptions, Output, run_with_client
from gardenbus.cli.lazy import help_of, new_group
from gardenbus.cli.output.console import (
    PROGRAMS,
    Format,
    errors,
    exit_codes,
    new_table,
    printed,
    show_document,
    show_lines,
    show_rows,
)
from gardenbus.common.api.durations import parse_duration
from gardenbus.common.api.identity.bootstrap_tokens import (
    NAMESPACE,
    BootstrapToken,
    is_token_secret,
    key_of_token,
    read_token,
)
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import BadRequest

token = new_group("Bootstrap tokens: by one a new gardenlet or member agent requests its certificate.")

TokenSeed = Annotated[
    str, typer.Option("--seed", help="Only for this seed.", metavar="SEED", autocompletion=completions.seeds)
]


def create(
    *,
    seed: TokenSeed = "",
    member: Annotated[str, typer.Option("--member", help="Only for this member cluster.", metavar="CLUSTER")] = "",
    ttl: Annotated[str, typer.Option("--ttl", help="Its life, 1m to 7d.", metavar="DURATION")] = "1h",
    description: Annotated[str, typer.Option("--description", help="What it is for, for people.")] = "",
    output: Output = Format.TABLE,
    landscape: LandscapeOptions,
) -> None:
    """Make a bootstrap token and print it: it is shown this once, and serves once.

    The agent finds it as the file bootstrap-token in its directory, and removes it once it has its certificate.

    Example: gardenbus token create --seed aws-cork --ttl 1h
    """
    with exit_codes():
        try:
            seconds = int(parse_duration(ttl).total_seconds())
        except ValueError as error:
            raise BadRequest(f"--ttl: {error}") from error
        body = {"seed": seed, "member": member, "ttlSeconds": seconds, "description": description}
    made = run_with_client(lambda api: api.call("token.create", body), *landscape)
    if output in PROGRAMS:
        show_document(made, output)
        return
    show_lines([made["token"]])
    whose = made["boundTo"] or "any seed or member cluster that has no living certificate"
    errors.print(f"for {whose}, until {made['expires']}")


def listing(*, output: Output = Format.TABLE, landscape: LandscapeOptions) -> None:
    """Show bootstrap tokens, without their secret halves.

    Example: gardenbus token list
    """

    async def work(api: ApiClient) -> list[BootstrapToken]:
        found: list[BootstrapToken] = []
        for document in await api.items(f"secret.{NAMESPACE}"):
            name = str(document["metadata"]["name"])
            if is_token_secret(ObjectKey("secret", NAMESPACE, name)):
                try:
                    found.append(read_token(document))
                except BadRequest as error:
                    errors.print(f"{name}: {error.message}")
        return sorted(found, key=lambda each: each.expires)

    tokens = run_with_client(work, *landscape)
    if printed(output, {"items": [_row(each) for each in tokens]}, [each.token.id for each in tokens]):
        return
    if tokens:
        table = new_table("ID", "EXPIRES", "FOR", "SPENT ON", folded="DESCRIPTION")
        for each in tokens:
            row = _row(each)
            table.add_row(*(row[name] or "-" for name in ("id", "expires", "boundTo", "spentOn", "description")))
        show_rows(table)
    else:
        errors.print("there are no bootstrap tokens")


def delete(
    ids: Annotated[list[str], typer.Argument(help="Ids, or whole tokens.", metavar="ID…")],
    *,
    landscape: LandscapeOptions,
) -> None:
    """Remove bootstrap tokens: nobody comes in by them any more.

    Example: gardenbus token delete 4f2a91
    """
    with exit_codes():
        keys = {each.partition(".")[0]: key_of_token(each.partition(".")[0]) for each in ids}

    async def work(api: ApiClient) -> None:
        for name, key in keys.items():
            response = await api.request(f"delete.{key.tail}")
            if not response.ok:
                raise api_error(response.error)
            show_lines([f"token {name} deleted"])

    run_with_client(work, *landscape)


for name, command in (("create", create), ("list", listing), ("delete", delete)):
    token.command(name, help=help_of(command))(command)
token.command("ls", help=help_of(listing), hidden=True)(listing)


def _row(each: BootstrapToken) -> dict[str, str]:
    ended = " (ended)" if each.expires <= datetime.now(UTC) else ""
    return {
        "id": each.token.id,
        "expires": f"{each.expires.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}{ended}",
        "boundTo": each.bound_to.user if each.bound_to else "",
        "spentOn": each.spent_by.partition("/")[0],
        "description": each.description,
    }
