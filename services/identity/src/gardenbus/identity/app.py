"""Composition root of the identity service: the cache of credentials, and the callout."""

from datetime import timedelta
from pathlib import Path

from gardenbus.common.adapters.nats.callout import serve_callouts
from gardenbus.common.adapters.nats.credentials import read_credentials
from gardenbus.common.api.identity.nkeys import KeyPair, key_pair
from gardenbus.common.controller.informer import Informer
from gardenbus.common.errors import BadRequest, SettingsInvalid
from gardenbus.common.ports.connections import Connections
from gardenbus.common.runtime.connections import connect_all
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.credentials.authorities import AuthoritiesFile
from gardenbus.identity.handlers.callout import CalloutHandler
from gardenbus.identity.handlers.credentials_cache import KINDS, NAMESPACES, CredentialsCache
from gardenbus.identity.settings import IdentitySettings


async def build(context: ServiceContext[IdentitySettings]) -> None:
    """Connect to the servers, as soon as they are there, and start."""
    await start_identity(context, await connect_all(context, reporter="identity"))


async def start_identity(context: ServiceContext[IdentitySettings], connections: Connections) -> None:
    """Answer callouts once the credentials are cached. Raises SettingsInvalid for a file that cannot be used."""
    settings, subjects = context.settings, connections.subjects
    cache = CredentialsCache()
    informer = Informer(connections.store, connections.bus, subjects, KINDS, NAMESPACES)
    informer.subscribe(cache.changed)
    context.stack.push_async_callback(informer.stop)
    handler = CalloutHandler(
        cache=cache,
        authorities=AuthoritiesFile(Path(settings.authorities)),
        issuer=_issuer(Path(settings.issuer_key)),
        subjects=subjects,
        clock=context.clock,
        session=timedelta(seconds=settings.session_seconds),
    )
    await informer.start()
    connection = await context.stack.enter_async_context(
        serve_callouts(
            settings.nats_url,
            f"identity-{context.instance}",
            read_credentials(Path(settings.callout_credentials), "identity"),
            handler.respond,
        )
    )
    context.health.add_readiness("callout", lambda: None if connection.is_connected else "not connected")
    context.health.add_readiness("informer", lambda: None if informer.synced else "credentials are not cached yet")


def _issuer(file: Path) -> KeyPair:
    try:
        return key_pair(file.read_text())
    except (OSError, BadRequest) as error:
        raise SettingsInvalid((f"GARDENBUS_ISSUER_KEY: {file}: {error}",)) from error
