"""The landscape that a command is about: found by options, the environment, a context, or in a directory."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gardenbus.cli.contexts.config import ContextEntry, ContextsConfig, config_file, read_config, url_of
from gardenbus.cli.contexts.credential_files import kind_of
from gardenbus.cli.contexts.selection import selected_context
from gardenbus.cli.local.directory import LandscapeDirectory, default_directory, directory_option
from gardenbus.common.adapters.addresses import check_nats_url
from gardenbus.common.errors import BadRequest, Unavailable

if TYPE_CHECKING:
    from gardenbus.common.adapters.nats.credentials import Credentials

DEFAULT_PREFIX = "garden"


class LandscapeTarget(NamedTuple):
    """The landscape of a command. `directory` is its state directory, when it was found by one."""

    nats_url: str
    prefix: str
    directory: Path | None = None
    login: tuple[str, str] | None = None
    """User and password, unless the address has them, or a file says who one is."""
    credentials: Path | None = None
    """File that proves who one is (`contexts.credential_files`)."""
    user: str = ""
    """Owner of an nkey in that file."""
    ca: str | None = None
    """File of the authorities that the server's certificate may be of."""


def find_landscape(
    directory: Path | None, nats_url: str | None, prefix: str | None, environ: Mapping[str, str] | None = None
) -> LandscapeTarget:
    """Find the landscape: by options (`--context` is one), the environment, the current context, or as ./.gardenbus.

    Raises Unavailable, or BadRequest when the address given is none, or the context is not there.
    """
    environment = os.environ if environ is None else environ
    context = selected_context.get()
    if context is not None and (directory is not None or nats_url):
        raise BadRequest("--context, or --dir, or --nats-url: exactly one of them chooses the landscape")
    if context is not None:
        return _of_context(read_config(config_file(environment)), context, environment, prefix)
    prefix = prefix or environment.get("GARDENBUS_PREFIX")
    url = nats_url or (environment.get("GARDENBUS_NATS_URL") if directory is None else None)
    if url:
        check_nats_url(url, "" if nats_url else "GARDENBUS_NATS_URL: ")
        file, ca = environment.get("GARDENBUS_NATS_CREDENTIALS"), environment.get("GARDENBUS_NATS_CA")
        return LandscapeTarget(
            url, prefix or DEFAULT_PREFIX, credentials=Path(file).expanduser() if file else None, ca=ca or None
        )
    if directory is None and not environment.get("GARDENBUS_DIR"):
        config = read_config(config_file(environment))
        if config.current_context:
            return _of_context(config, config.current_context, environment, prefix)
    return _in_directory(directory or default_directory(environment), prefix)


def _of_context(
    config: ContextsConfig, name: str, environment: Mapping[str, str], prefix: str | None
) -> LandscapeTarget:
    landscape = config.named(name)
    prefix = prefix or landscape.prefix or environment.get("GARDENBUS_PREFIX")
    if landscape.dir:
        return _in_directory(Path(landscape.dir).expanduser(), prefix)
    try:
        check_nats_url(landscape.nats_url)
        return _with_address(landscape, prefix or DEFAULT_PREFIX)
    except BadRequest as error:
        raise BadRequest(f"context {name}: {error}") from error


def _with_address(landscape: ContextEntry, prefix: str) -> LandscapeTarget:
    file = Path(landscape.credentials).expanduser() if landscape.credentials else None
    ca = str(Path(landscape.ca).expanduser()) if landscape.ca else None
    if file is None or kind_of(file) == "address":
        return LandscapeTarget(url_of(landscape), prefix, ca=ca)
    return LandscapeTarget(landscape.nats_url, prefix, credentials=file, user=landscape.user, ca=ca)


def _in_directory(directory: Path, prefix: str | None) -> LandscapeTarget:
    found = LandscapeDirectory(directory).read()
    command = f"`gardenbus up{directory_option(directory)}`"
    if found is not None and found.nats_url and found.state == "stopped":
        raise Unavailable(f"landscape {directory} is stopped: {command} starts it again, with its state")
    if found is None or not found.nats_url:
        hint = f"start one with {command}, or name one with --nats-url or --context"
        raise Unavailable(f"no landscape in {directory}: {hint}")
    return LandscapeTarget(
        found.nats_url,
        prefix or found.prefix,
        directory,
        login=(found.nats_user, found.nats_password) if found.nats_user else None,
        ca=found.ca or None,
    )


def credentials_of(where: LandscapeTarget) -> "Credentials":
    """Credentials for a landscape. Raises SettingsInvalid for an unusable file, BadRequest for a wrong name."""
    from gardenbus.common.adapters.nats.credentials import NO_CREDENTIALS, Login, login_credentials, read_credentials  # noqa: PLC0415  what works offline need not pay for it
    from gardenbus.common.api.identity.names import carried  # noqa: PLC0415  as above

    if where.credentials is not None:
        if kind_of(where.credentials) == "nkey" and not where.user:
            raise BadRequest(f"{where.credentials} is an nkey, which names no user: a context names it (--user)")
        return read_credentials(where.credentials, carried(where.user) if where.user else "", where.ca)
    if where.login is not None:
        return login_credentials(Login(*where.login), where.ca)
    return NO_CREDENTIALS._replace(ca=where.ca)
