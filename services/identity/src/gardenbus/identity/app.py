"""Composition root of the identity service: cache of credentials, callout, signing, requested credentials, kicking."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from gardenbus.common.adapters.nats.credentials import read_credentials
from gardenbus.common.api.identity import bootstrap_tokens
from gardenbus.common.api.identity.nkeys import KeyPair, key_pair
from gardenbus.common.controller.budget_settings import BudgetSettings
from gardenbus.common.controller.budget_use import BudgetUse
from gardenbus.common.controller.informer import Informer
from gardenbus.common.errors import BadRequest, SettingsInvalid
from gardenbus.common.ports.connections import Connections
from gardenbus.common.runtime.connections import connect_all
from gardenbus.common.runtime.controllers import start_informers
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.credentials.authorities import AuthoritiesFile
from gardenbus.identity.adapters.callout import serve_callouts
from gardenbus.identity.adapters.signing_authority import SigningAuthority
from gardenbus.identity.adapters.system_account import system_account
from gardenbus.identity.controllers import signing
from gardenbus.identity.controllers.connection_limits import ConnectionLimitsController
from gardenbus.identity.controllers.revoked_connections import RevokedConnectionsController
from gardenbus.identity.controllers.scheduler_queues import SchedulerQueuesController
from gardenbus.identity.controllers.signing import SigningController
from gardenbus.identity.controllers.token_requestor import TokenRequestorController
from gardenbus.identity.domain.connection_loads import ConnectionLoads, at_once
from gardenbus.identity.domain.requests_cache import RequestsCache
from gardenbus.identity.registry import IssuedCertificates
from gardenbus.identity.requests.callout import CalloutHandler
from gardenbus.identity.settings import IdentitySettings
from gardenbus.identity.watch.credentials_cache import KINDS, NAMESPACES, CredentialsCache


async def build(context: ServiceContext[IdentitySettings]) -> None:
    """Connect to the servers, as soon as they are there, and start."""
    await start_identity(context, await connect_all(context, reporter="identity"))


async def start_identity(context: ServiceContext[IdentitySettings], connections: Connections) -> None:
    """Respond to callouts once the credentials are cached. Raises SettingsInvalid for a file that cannot be used."""
    settings, subjects = context.settings, connections.subjects
    cache, requests = CredentialsCache(context.clock.now), RequestsCache()
    informers = (
        Informer(connections.store, connections.bus, subjects, KINDS, NAMESPACES),
        Informer(connections.store, connections.bus, subjects, signing.KINDS, {"secret": bootstrap_tokens.NAMESPACE}),
    )
    for informer in informers:
        informer.subscribe(cache.changed, ("secret", "configmap"))
    informers[1].subscribe(requests.changed, ("certificatesigningrequest",))
    _start_signing(context, connections, informers[1], requests)
    authorities = AuthoritiesFile(Path(settings.authorities))
    signers = AuthoritiesFile(Path(settings.nats_ca or settings.authorities))
    requestor = TokenRequestorController(connections.store, context.clock, lambda: cache.revoked, signers.pem)
    informers[0].subscribe(requestor.changed, ("secret",))
    context.spawn("token-requestor", requestor.queue.run())
    queues = SchedulerQueuesController(connections.bus, subjects, cache.principals, requests.principals)
    for informer in informers:
        informer.subscribe(queues.changed)
    context.spawn("scheduler-queues", queues.run())
    budgets = BudgetSettings()
    informers[0].subscribe(budgets.on_change, ("configmap",))
    loads = ConnectionLoads(budgets.of)
    use = BudgetUse(budgets.of)
    use.count("connections", lambda: loads.counts)
    use.count("waitingBytes", lambda: loads.sent_at_once(context.clock.monotonic()), at_once)
    connections.bus.report_stats(use.report)
    handler = CalloutHandler(
        cache=cache,
        authorities=authorities,
        issuer=_issuer(Path(settings.issuer_key)),
        subjects=subjects,
        clock=context.clock,
        session=timedelta(seconds=settings.session_seconds),
        loads=loads,
    )
    await _start_kicking(context, cache, loads, requests.user_of, handler.user_of)
    await start_informers(context, *informers, unready="credentials are not cached yet")
    connection = await context.stack.enter_async_context(
        serve_callouts(
            settings.nats_url,
            f"identity-{context.instance}",
            read_credentials(Path(settings.callout_credentials), "identity", settings.nats_ca or None),
            handler.respond,
        )
    )
    context.health.add_readiness("callout", lambda: None if connection.is_connected else "not connected")


async def _start_kicking(
    context: ServiceContext[IdentitySettings],
    cache: CredentialsCache,
    loads: ConnectionLoads,
    *users_of: Callable[[str], str | None],
) -> None:
    settings = context.settings
    if not settings.system_credentials:
        return
    credentials = read_credentials(Path(settings.system_credentials), "identity", settings.nats_ca or None)
    system = await context.stack.enter_async_context(
        system_account(settings.nats_url, f"identity-system-{context.instance}", credentials)
    )
    controller = RevokedConnectionsController(system, context.clock, *users_of)
    cache.on_withdrawn, cache.on_removed = controller.withdraw, controller.withdraw_soon
    context.spawn("kicking", controller.queue.run())
    context.spawn("connection-limits", ConnectionLimitsController(system, loads, context.clock).run())


def _start_signing(
    context: ServiceContext[IdentitySettings],
    connections: Connections,
    informer: Informer,
    requests: RequestsCache,
) -> None:
    settings = context.settings
    if not settings.signing_key:
        return
    authority = SigningAuthority(
        Path(settings.signing_certificate), Path(settings.signing_key), timedelta(seconds=settings.certificate_seconds)
    )
    controller = SigningController(
        store=connections.store,
        clock=context.clock,
        certificates=IssuedCertificates(connections.store, requests),
        authority=authority,
    )
    informer.subscribe(controller.changed)
    context.spawn("signing", controller.queue.run())


def _issuer(file: Path) -> KeyPair:
    try:
        return key_pair(file.read_text())
    except (OSError, BadRequest) as error:
        raise SettingsInvalid((f"GARDENBUS_ISSUER_KEY: {file}: {error}",)) from error
