"""`login`: credentials of one's own, tried out and kept in a context."""

import asyncio
import getpass
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import typer

from gardenbus.cli.client.api import connected
from gardenbus.cli.client.targets import LandscapeTarget, find_landscape
from gardenbus.cli.commands.issued import issue_credentials, landscape_role, life_of, person
from gardenbus.cli.commands.options import PrefixOption
from gardenbus.cli.contexts.config import (
    ContextEntry,
    ContextsConfig,
    check_context,
    config_file,
    read_config,
    write_config,
)
from gardenbus.cli.contexts.credential_files import kind_of
from gardenbus.cli.output.console import exit_codes, show_lines
from gardenbus.common.api.terminal_text import escaped
from gardenbus.common.errors import BadRequest, CredentialsRejected
from gardenbus.common.runtime import event_loop

ISSUED_WITHIN_SECONDS = 10.0
"""Time within which the landscape lets in by credentials that were issued just now."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_SUFFIXES = {"login": ".json", "nkey": ".nk", "certificate": ".pem"}


class _LoginEntry(NamedTuple):
    """Content of the file that is kept, and where it lets one in."""

    content: bytes
    suffix: str
    where: LandscapeTarget


def login(  # noqa: PLR0913 - one parameter an option
    name: Annotated[str, typer.Argument(help="The context that is made.", metavar="CONTEXT")],
    *,
    nats_url: Annotated[str | None, typer.Option("--nats-url", help="Where NATS is.")] = None,
    credentials: Annotated[
        Path | None, typer.Option("--credentials", help="A file as `identity issue` writes it, or a certificate.")
    ] = None,
    user: Annotated[
        str, typer.Option("--user", help="Who one is; without --credentials the password is prompted for.")
    ] = "",
    ca: Annotated[Path | None, typer.Option("--ca", help="The authorities of NATS' certificate, PEM.")] = None,
    directory: Annotated[
        Path | None, typer.Option("--dir", help="Or: have credentials issued in this landscape of one's own machine.")
    ] = None,
    role: Annotated[str, typer.Option("--role", help="With --dir: operator or viewer of the landscape.")] = "",
    ttl: Annotated[str, typer.Option("--ttl", help="With --dir: how long they are good.", metavar="DURATION")] = "720h",
    prefix: PrefixOption = None,
) -> None:
    """Keep credentials in a context, once they have been tried out, and make it the current one.

    They are copied into a file for their owner alone, beside the config file.

    Examples:
    gardenbus login lab --nats-url tls://nats.example.com:4222 --ca ca.crt --credentials ann.json
    gardenbus login lab --nats-url tls://nats.example.com:4222 --ca ca.crt --user ann
    gardenbus login here --dir .gardenbus --user ann --role viewer
    """
    with exit_codes():
        if not _NAME.fullmatch(name):
            raise BadRequest(f"{name!r} is no name for a context and its file: letters, digits, - _ and . only")
        if bool(nats_url) == bool(directory):
            raise BadRequest("--nats-url with credentials of one's own, or --dir to have some issued: one of them")
        if directory is not None:
            entry, who = event_loop.run(_issued(directory, prefix, user, role, ttl))
        else:
            entry = _brought(
                LandscapeTarget(nats_url or "", prefix or "", ca=str(ca) if ca else None), credentials, user
            )
            who = event_loop.run(_who(entry.where, within_seconds=0))
        file = _keep(name, entry)
    show_lines([f"context {name}: {who['user']} ({who['role']}), the current one; {file}"])


async def _issued(
    directory: Path, prefix: str | None, user: str, role: str, ttl: str
) -> tuple[_LoginEntry, dict[str, Any]]:
    """Have credentials issued by the operator of a landscape of this machine."""
    principal = person(user)
    wanted, expires = landscape_role(role, principal), datetime.now(UTC).replace(microsecond=0) + life_of(ttl)
    found = find_landscape(directory, None, prefix)
    if found.login is None:
        raise BadRequest(f"{directory}: it needs no credentials")
    async with connected(found) as api:
        issued = await issue_credentials(api, principal, expires, role=wanted)
    own = msgspec.json.decode(issued.content, type=dict[str, str])
    entry = _LoginEntry(issued.content, ".json", found._replace(login=(own["user"], own["password"]), directory=None))
    return entry, await _who(entry.where, within_seconds=ISSUED_WITHIN_SECONDS)


def _brought(where: LandscapeTarget, credentials: Path | None, user: str) -> _LoginEntry:
    """Credentials that somebody has already, or types in."""
    if credentials is None:
        if not user:
            raise BadRequest("--credentials, or --user and a password: who is it?")
        from gardenbus.common.api.identity.names import carried  # noqa: PLC0415  slow to import

        carried(user)
        content = msgspec.json.encode({"user": user, "password": _password(user)})
        return _LoginEntry(content, ".json", where._replace(login=(user, msgspec.json.decode(content)["password"])))
    kind = kind_of(credentials)
    if kind not in _SUFFIXES:
        raise BadRequest(
            f"{credentials}: a file as `gardenbus identity issue` writes it, or a certificate with its key"
        )
    return _LoginEntry(credentials.read_bytes(), _SUFFIXES[kind], where._replace(credentials=credentials, user=user))


def _password(user: str, prompt: Callable[[str], str] = getpass.getpass) -> str:
    given = prompt(escaped(f"password of {user}: ")) if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    if not given:
        raise BadRequest(f"no password of {user} was given")
    return given


async def _who(where: LandscapeTarget, *, within_seconds: float) -> dict[str, Any]:
    """User and role that the landscape takes this one for. Raises CredentialsRejected."""
    where = where._replace(prefix=where.prefix or "garden")
    ends = asyncio.get_running_loop().time() + within_seconds
    while True:
        try:
            async with connected(where) as api:
                return await api.call("whoami")
        except CredentialsRejected:
            if asyncio.get_running_loop().time() >= ends:
                raise
            await asyncio.sleep(0.5)


def _keep(context: str, entry: _LoginEntry) -> Path:
    """Write the file and the context. Raises BadRequest."""
    from gardenbus.credentials import secret_files  # noqa: PLC0415  slow to import

    config = config_file()
    if config is None:
        raise BadRequest("no place for a config file: set GARDENBUS_CONFIG")
    stored = read_config(config)
    file = config.absolute().parent / "credentials" / f"{context}{entry.suffix}"
    try:
        secret_files.make_directory(file.parent)
        secret_files.write(file, entry.content)
    except OSError as error:
        raise BadRequest(f"cannot write {file}: {error.strerror}") from error
    where = entry.where
    made = ContextEntry(
        nats_url=where.nats_url,
        credentials=str(file),
        user=where.user if entry.suffix == ".nk" else "",
        ca=str(Path(where.ca).absolute()) if where.ca else "",
        prefix=where.prefix,
    )
    check_context(made)
    write_config(config, ContextsConfig(context, {**stored.contexts, context: made}))
    return file
