"""`identity issue` and `identity ls`: credentials for those who have no certificate."""

import base64
import json
import os
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, NamedTuple, cast

import typer

from gardenbus.cli.client.api import ApiClient, api_error
from gardenbus.cli.commands.options import LandscapeOptions, Output, run_with_client
from gardenbus.cli.output.console import Format, exit_codes, printed, show_lines
from gardenbus.cli.output.printers import table_text
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.durations import parse_duration
from gardenbus.common.api.identity import names as carried_names
from gardenbus.common.api.identity.issued_credentials import CREDENTIALS, PURPOSE_LABEL, credentials_secret
from gardenbus.common.api.identity.principals import Principal, Role
from gardenbus.common.api.identity.roles import LANDSCAPE_ROLES, LandscapeRole, landscape_roles, role_patch
from gardenbus.common.api.keys import GARDEN_NAMESPACE
from gardenbus.common.errors import BadRequest

_PASSWORD_BYTES = 32
_NOT_FOUND = 404
_LONGEST_TTL = "8760h"


def issue(  # noqa: PLR0913 - one parameter an option
    *,
    seed: Annotated[str, typer.Option("--seed", help="For the gardenlet of this seed.")] = "",
    member: Annotated[str, typer.Option("--member", help="For the agent of this member cluster.")] = "",
    user: Annotated[str, typer.Option("--user", help="For this person or program.")] = "",
    scheduler: Annotated[str, typer.Option("--scheduler", help="For a scheduler of one's own of this name.")] = "",
    extension: Annotated[str, typer.Option("--extension", help="For the extension of this seed's backend nats.")] = "",
    plugin: Annotated[str, typer.Option("--plugin", help="For a plug-in of schedulers of this name.")] = "",
    role: Annotated[
        str, typer.Option("--role", help="operator or viewer of the landscape; roles in a Project: its spec.members.")
    ] = "",
    ttl: Annotated[str, typer.Option("--ttl", help="How long it is good, as 1h.", metavar="DURATION")] = "720h",
    file: Annotated[Path, typer.Option("-o", "--output", help="File to write.", metavar="FILE")],
    nkey: Annotated[bool, typer.Option("--nkey", help="An nkey's seed instead of user and password.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
    landscape: LandscapeOptions,
) -> None:
    """Write credentials by which somebody comes in: {"user", "password", "expires"}, or the seed of an nkey.

    Any NATS client can use them. What they may do stands in the permission table. The landscape keeps a Secret to check
    them with, in the namespace garden: deleting it revokes them.

    Examples:
    gardenbus identity issue --seed my-seed --ttl 24h -o my-seed.json
    gardenbus identity issue --user ann@example.org --role viewer -o ann.json
    """
    with exit_codes():
        principal = _principal(
            seed=seed, member=member, user=user, scheduler=scheduler, extension=extension, plugin=plugin
        )
        wanted_role = landscape_role(role, principal)
        expires = datetime.now(UTC).replace(microsecond=0) + life_of(ttl)
        if file.exists() and not force:
            raise BadRequest(f"{file} is there already: --force writes over it")

    async def work(api: ApiClient) -> NewCredentials:
        return await issue_credentials(api, principal, expires, role=wanted_role, by_nkey=nkey)

    issued = run_with_client(work, *landscape)
    with exit_codes():
        _write(file, issued.content, force=force)
    show_lines([f"{file}: {principal.user}, until {expires.isoformat()}; Secret {GARDEN_NAMESPACE}/{issued.secret}"])


class NewCredentials(NamedTuple):
    """Credentials, and the name of the Secret that they are checked with."""

    content: bytes
    secret: str


async def issue_credentials(
    api: ApiClient, principal: Principal, expires: datetime, *, role: LandscapeRole | None = None, by_nkey: bool = False
) -> NewCredentials:
    """Have credentials checked from now on, and give their user a role. Raises ApiError, Unavailable."""
    name = f"credentials-{secrets.token_hex(6)}"
    content, secret = _new_credentials(name, principal, expires, by_nkey=by_nkey)
    _raise_unless_ok(await api.apply([secret]))
    if role is not None:
        await _give_role(api, principal.user, role)
    return NewCredentials(content, name)


def ls(*, output: Output = Format.TABLE, landscape: LandscapeOptions) -> None:
    """List credentials that were issued, by the Secret that each is checked with; deleting it revokes them.

    Example: gardenbus identity ls
    """
    rows = run_with_client(issued_rows, *landscape)
    if not printed(output, {"items": rows}, [row["secret"] for row in rows]):
        lines = [[row["user"], row["by"], row["expires"], row["secret"]] for row in rows]
        show_lines(table_text(["USER", "BY", "EXPIRES", "SECRET"], lines).splitlines())


async def issued_rows(api: ApiClient) -> list[dict[str, str]]:
    """Credentials that were issued, in the order of their users. Raises ApiError, Unavailable."""
    found = await api.items(f"secret.{GARDEN_NAMESPACE}", {"labelSelector": f"{PURPOSE_LABEL}={CREDENTIALS}"})
    return sorted(map(_row, found), key=lambda row: row["user"])


def _principal(**names: str) -> Principal:
    """The one that was requested. Raises BadRequest."""
    given = {option: name for option, name in names.items() if name}
    if len(given) != 1:
        raise BadRequest("--seed, --member, --user, --scheduler, --extension or --plugin: exactly one is needed")
    ((option, name),) = given.items()
    roles: dict[str, Role] = {"seed": "gardenlet", "member": "member-agent"}
    principal = Principal(roles.get(option) or cast("Role", option), name)
    return person(name) if option == "user" else carried_names.issued(principal.user)


def person(name: str) -> Principal:
    """A person or a program. Raises BadRequest for a name that is for others."""
    try:
        return carried_names.person(name)
    except BadRequest as error:
        raise BadRequest(f"--user {error.message}") from error


def landscape_role(role: str, principal: Principal) -> LandscapeRole | None:
    """The role of `--role`; None without one. Raises BadRequest."""
    if not role:
        return None
    if role not in ("operator", "viewer"):
        raise BadRequest(f"--role {role}: operator or viewer; member and admin are roles in a Project's spec.members")
    if principal.role != "user":
        raise BadRequest("--role is for --user: what others may do stands in the permission table")
    return role


def life_of(ttl: str) -> timedelta:
    """The life of `--ttl`. Raises BadRequest."""
    try:
        life = parse_duration(ttl)
    except ValueError as error:
        raise BadRequest(f"--ttl: {error}") from error
    if not parse_duration("1m") <= life <= parse_duration(_LONGEST_TTL):
        raise BadRequest(f"--ttl {ttl}: between 1m and {_LONGEST_TTL}")
    return life


def _new_credentials(name: str, principal: Principal, expires: datetime, *, by_nkey: bool) -> tuple[bytes, Document]:
    """The content of the file, and the Secret that it is checked with."""
    if by_nkey:
        from gardenbus.credentials.new_nkeys import new_nkey  # noqa: PLC0415  slow to import

        pair = new_nkey("user")
        return f"{pair.seed}\n".encode(), credentials_secret(name, principal, expires, nkey=pair.public)
    password = secrets.token_urlsafe(_PASSWORD_BYTES)
    content = {"user": principal.user, "password": password, "expires": expires.isoformat()}
    return json.dumps(content).encode() + b"\n", credentials_secret(name, principal, expires, password=password)


async def _give_role(api: ApiClient, user: str, role: LandscapeRole) -> None:
    patch = json.dumps(role_patch(user, role)).encode()
    response = await api.request(f"patch.{LANDSCAPE_ROLES.tail}", patch)
    if not response.ok and response.error.get("code") == _NOT_FOUND:
        _raise_unless_ok(await api.apply([landscape_roles({user: role})]))
    elif not response.ok:
        raise api_error(response.error)


def _raise_unless_ok(responses: Sequence[Any]) -> None:
    for response in responses:
        if not response.ok:
            raise api_error(response.error)


def _write(file: Path, content: bytes, *, force: bool) -> None:
    """Write for the owner alone; without `force` nothing is written over. Raises BadRequest."""
    try:
        if force:
            file.unlink(missing_ok=True)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
    except OSError as error:
        raise BadRequest(f"{file}: {error.strerror}; the credentials were not kept, issue others") from error


def _row(secret: Document) -> dict[str, str]:
    data, metadata = section(secret, "data"), section(secret, "metadata")
    by = "nkey" if data.get("nkey") else "password"
    return {"user": _decoded(data, "user"), "by": by, "expires": _decoded(data, "expires"), "secret": metadata["name"]}


def _decoded(data: Document, field: str) -> str:
    try:
        return base64.b64decode(str(data.get(field, ""))).decode()
    except ValueError:
        return "unreadable"
