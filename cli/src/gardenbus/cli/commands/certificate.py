"""`certificate`: decisions about requests for certificates, and revocations."""

import base64
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

import typer

from gardenbus.cli.client.api import ApiClient, api_error
from gardenbus.cli.client.api_error import ApiError
from gardenbus.cli.commands.issued import issued_rows
from gardenbus.cli.commands.options import LandscapeOptions, run_with_client
from gardenbus.cli.lazy import help_of, new_group
from gardenbus.cli.output.console import exit_codes, show_lines
from gardenbus.common.api.document import Document, encode, section
from gardenbus.common.api.identity.principals import principal_of
from gardenbus.common.api.identity.revocations import REVOCATIONS, is_serial, revocation
from gardenbus.common.api.identity.signing_requests import SERIAL
from gardenbus.common.errors import BadRequest, NotFound

certificate = new_group("Decide about requests for certificates (`get csr` shows them), and revoke credentials.")

_AGENTS_OF: Mapping[str, str] = {"gardenlet": "seed", "member-agent": "membercluster"}
"""Kinds whose objects have an agent, by its role."""

CsrNames = Annotated[list[str], typer.Argument(help="Requests, as `gardenbus get csr` names them.", metavar="NAME…")]
ReviewMessage = Annotated[str, typer.Option("-m", "--message", help="Why, for people: it stands in the condition.")]


def approve(names: CsrNames, *, message: ReviewMessage = "", landscape: LandscapeOptions) -> None:
    """Approve requests for certificates; they are signed at once.

    Example: gardenbus certificate approve seed-csr-6f1c
    """
    _decide("approve", names, message, landscape)


def deny(names: CsrNames, *, message: ReviewMessage = "", landscape: LandscapeOptions) -> None:
    """Deny requests for certificates, for ever.

    Example: gardenbus certificate deny seed-csr-6f1c -m "nobody asked for this seed"
    """
    _decide("deny", names, message, landscape)


def revoke(
    what: Annotated[
        str, typer.Argument(help="A seed, a serial number, or a user as seed:NAME.", metavar="SEED|SERIAL|USER")
    ],
    *,
    reason: Annotated[str, typer.Option("--reason", help="Why, for people.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Though nothing of that name is known here.")] = False,
    landscape: LandscapeOptions,
) -> None:
    """Revoke what somebody was issued until now: it lets nobody in any more, and connections are closed.

    Nothing is torn down: control planes go on, and the agent comes back with a new certificate (`token create`). What
    nobody here was issued is most likely misspelt, and revoked with --force alone (a certificate signed by hand, say).

    Examples:
    gardenbus certificate revoke aws-cork --reason stolen
    gardenbus certificate revoke member:paris
    gardenbus certificate revoke 497ace1151364eee1a7e1664b5fb60bee9e6cfac
    """
    with exit_codes():
        if not is_serial(what):
            principal_of(what)

    async def work(api: ApiClient) -> str:
        name = what if is_serial(what) or ":" in what else await _user(api, what)
        if not force and not await _is_issued(api, name):
            hint = "`gardenbus get csr` and `gardenbus identity ls` show what was issued"
            raise NotFound(f"nothing of the name {what} is known: {hint}; --force revokes {name} all the same")
        line = revocation(name, datetime.now(UTC), " ".join(reason.split()))
        response = await api.request(f"patch.{REVOCATIONS.tail}", encode({"data": line["data"]}))
        if not response.ok and response.error.get("code") == NotFound.code:
            response = await api.request("apply", encode(line))
        if not response.ok:
            raise api_error(response.error)
        return name

    show_lines([f"revoked: {run_with_client(work, *landscape)}"])


async def _is_issued(api: ApiClient, name: str) -> bool:
    """True for a recorded certificate's serial number, and for a user who is an agent or was issued something."""
    requests = await api.items("certificatesigningrequest")
    if is_serial(name):
        return any(section(section(each, "metadata"), "annotations").get(SERIAL) == name for each in requests)
    principal = principal_of(name)
    kind = _AGENTS_OF.get(principal.role)
    if kind is not None and await _is_there(api, kind, principal.name):
        return True
    if any(row["user"] == name for row in await issued_rows(api)):
        return True
    return any(_requested_user(each) == name for each in requests)


def _requested_user(request: Document) -> str:
    """The user that a request is for; "" for what cannot be read."""
    from gardenbus.credentials.certificates import requested_principal  # noqa: PLC0415  slow to import

    try:
        return requested_principal(base64.b64decode(str(section(request, "spec").get("request")))).user
    except (BadRequest, ValueError):
        return ""


async def _is_there(api: ApiClient, kind: str, name: str) -> bool:
    try:
        await api.call(f"get.{kind}._.{name}")
    except ApiError as error:
        if error.error.get("code") != NotFound.code:
            raise
        return False
    return True


async def _user(api: ApiClient, name: str) -> str:
    """The user that a bare name means: a seed's gardenlet, if there is such a seed, else a person."""
    return f"seed:{name}" if await _is_there(api, "seed", name) else name


def _decide(verb: str, names: list[str], message: str, landscape: LandscapeOptions) -> None:
    async def work(api: ApiClient) -> None:
        for name in names:
            await api.call(f"csr.{verb}", {"name": name, "message": message})
            show_lines([f"certificatesigningrequest {name} {'approved' if verb == 'approve' else 'denied'}"])

    run_with_client(work, *landscape)


for command in (approve, deny, revoke):
    certificate.command(command.__name__, help=help_of(command))(command)
