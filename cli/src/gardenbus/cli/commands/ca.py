"""`ca`: the certificate authority whose files are on this machine."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from gardenbus.cli.client.api import ApiClient, api_error
from gardenbus.cli.client.targets import find_landscape
from gardenbus.cli.commands.options import LandscapeOptions, run_with_client
from gardenbus.cli.diagnostics.authorities import behind
from gardenbus.cli.diagnostics.served_certificates import until_served
from gardenbus.cli.lazy import help_of, new_group
from gardenbus.cli.local.directory import LandscapeDirectory
from gardenbus.cli.output.console import Exit, exit_codes, print_error, show_lines
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.identity.principals import principal_of
from gardenbus.common.api.identity.signing_requests import SINGULAR
from gardenbus.common.errors import BadRequest, NotFound
from gardenbus.common.runtime import event_loop

ca = new_group("The certificate authority, whose files are on this machine.")

_KINDS = {"gardenlet": "seed", "member-agent": "membercluster"}
_OPERATION = "gardener.cloud/operation"


@ca.callback()
def _group() -> None:
    """Keep `rotate` a subcommand, though it is the only one."""


def rotate(
    *,
    finish: Annotated[bool, typer.Option("--finish", help="Trust the old authority no longer.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Though some have no certificate of the new one.")] = False,
    identity: Annotated[
        Path | None, typer.Option("--identity-dir", help="Where ca.crt and ca.key are (default: identity in --dir).")
    ] = None,
    landscape: LandscapeOptions,
) -> None:
    """Have a new authority sign certificates beside which the old one is trusted, and everybody renew theirs.

    Call it as often as you like: it lists who still has a certificate of the old authority, and requests its renewal.
    Once there is nobody, --finish has NATS show a certificate of the new one and ends the trust in the old one, also in
    that of copies: hand ca.crt to who has one before. `gardenbus doctor` shows how far it is.

    Examples:
    gardenbus ca rotate
    gardenbus ca rotate --finish
    """
    from gardenbus.cli.local.authority_rotation import AuthorityRotation  # noqa: PLC0415  slow to import
    from gardenbus.credentials.certificates import is_issued_by, read_certificate  # noqa: PLC0415
    from gardenbus.credentials.identity_directory import IdentityDirectory  # noqa: PLC0415

    with exit_codes():
        target = find_landscape(*landscape)
        where = identity or _identity_of(target.directory)
        rotation, now = AuthorityRotation(where / "ca.crt", where / "ca.key"), datetime.now(UTC)
        found = rotation.read() if finish else rotation.begin(now)
        _check_begun(is_rotating=found.is_rotating)

    async def work(api: ApiClient) -> list[str]:
        left = behind(await api.items(SINGULAR), lambda pem: is_issued_by(read_certificate(pem), found.signing), now)
        if not finish:
            await _demand(api, left)
        elif force or not left:
            await _forget_demands(api)
        return left

    left = run_with_client(work, *landscape)
    if not finish:
        show_lines(_progress(left))
        return
    if left and not force:
        print_error(f"they would be shut out, having certificates of the old authority only: {', '.join(left)}")
        raise typer.Exit(Exit.FAILED)
    with exit_codes():
        IdentityDirectory(where).replace_old_server_certificate(now)
        event_loop.run(until_served(target.nats_url, found.signing_pem))
        rotation.finish()
    show_lines(["the old authority is trusted no longer"])


def _check_begun(*, is_rotating: bool) -> None:
    if not is_rotating:
        raise BadRequest("no rotation has begun: `gardenbus ca rotate` begins one")


def _identity_of(directory: Path | None) -> Path:
    if directory is None:
        raise BadRequest("--identity-dir: where are ca.crt and ca.key of that landscape?")
    return LandscapeDirectory(directory).identity


def _progress(left: Sequence[str]) -> list[str]:
    if not left:
        return ["both authorities are trusted, the new one signs; everybody has a certificate of the new one",
                "next: gardenbus ca rotate --finish"]  # fmt: skip
    return [
        f"both authorities are trusted, the new one signs; of the old one are those of {', '.join(left)}",
        "they renew theirs now, who has no agent gets another (`gardenbus certificate`); then: gardenbus ca rotate",
    ]


async def _demand(api: ApiClient, users: Sequence[str]) -> None:
    """Request that agents renew their certificates. Objects that are gone are left out."""
    for user in users:
        principal = principal_of(user)
        if kind := _KINDS.get(principal.role):
            await _annotate(api, kind, principal.name, "renew")


async def _forget_demands(api: ApiClient) -> None:
    """Take back what no report removes: member agents do not report when their certificates end."""
    for cluster in await api.items("membercluster"):
        metadata = section(cluster, "metadata")
        if section(metadata, "annotations").get(_OPERATION) == "renew":
            await _annotate(api, "membercluster", str(metadata["name"]), None)


async def _annotate(api: ApiClient, kind: str, name: str, operation: str | None) -> None:
    patch: Document = {"metadata": {"annotations": {_OPERATION: operation}}}
    response = await api.request(f"patch.{kind}._.{name}", json.dumps(patch).encode())
    if not response.ok and response.error.get("code") != NotFound.code:
        raise api_error(response.error)


ca.command("rotate", help=help_of(rotate))(rotate)
