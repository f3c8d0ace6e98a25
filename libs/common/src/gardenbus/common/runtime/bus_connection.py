"""The bus on NATS, to which every service connects the same way."""

import os
import re
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import TypeVar

import msgspec

from gardenbus.common.adapters.nats import jetstream
from gardenbus.common.adapters.nats.credentials import NO_CREDENTIALS, Credentials, read_credentials
from gardenbus.common.adapters.nats.jetstream import JetStreamBus
from gardenbus.common.adapters.nats.streams import StreamSettings
from gardenbus.common.api.identity.permissions import OPTIONAL_STREAMS, STREAMS, managed_streams
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import NotFound, Unavailable
from gardenbus.common.ports.bus import ServiceIdentity
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.common.runtime.settings import CommonSettings

_SEMANTIC = re.compile(r"\d+\.\d+\.\d+")

AnySettings = TypeVar("AnySettings", bound=CommonSettings)


async def connect_bus(
    context: ServiceContext[AnySettings],
    *,
    streams: StreamSettings | None = None,
    manages_streams: bool = True,
    awaited_streams: Sequence[str] = (),
) -> tuple[JetStreamBus, Subjects]:
    """Connect to NATS (waiting for it), bring its streams about, and watch it in `/readyz`.

    Without `manages_streams` others bring them about: those that are `awaited_streams` are waited for. So does a
    service that has an identity, but for those that are its own (`permissions.managed_streams`).
    """
    settings = context.settings
    subjects = Subjects(settings.prefix)
    credentials = nats_credentials(settings, context.name)
    if settings.stream_replicas is not None:
        streams = msgspec.structs.replace(streams or StreamSettings(), replicas=settings.stream_replicas)
    if manages_streams and settings.nats_credentials:
        own = managed_streams(context.name)
        streams = msgspec.structs.replace(streams or StreamSettings(), only=own)
        awaited_streams = [name for name in STREAMS if name not in (*own, *OPTIONAL_STREAMS)]
    with context.awaiting("nats"):
        bus = await context.stack.enter_async_context(
            jetstream.connect(
                settings.nats_url,
                f"{context.name}-{context.instance}",
                settings.prefix,
                streams=streams,
                manages_streams=manages_streams,
                syncs_always=settings.nats_sync_always,
                credentials=credentials,
            )
        )
    await context.wait_for("nats", lambda: bus.register(identity_of(context.name, context.instance, settings.prefix)))
    context.health.add_readiness("nats", lambda: None if bus.connected else "not connected")
    if awaited_streams:
        await context.wait_for("streams", lambda: _require_streams(bus, subjects, awaited_streams))
    return bus, subjects


def nats_credentials(settings: CommonSettings, service: str) -> Credentials:
    """Credentials by which a service connects to NATS. Raises SettingsInvalid when the file cannot be used."""
    ca = settings.nats_ca or None
    if not settings.nats_credentials:
        return NO_CREDENTIALS._replace(ca=ca)
    return read_credentials(Path(settings.nats_credentials), service, ca)


async def _require_streams(bus: JetStreamBus, subjects: Subjects, names: Sequence[str]) -> None:
    """Raise Unavailable while one of the streams is missing."""
    for name in names:
        try:
            await bus.position(subjects.stream(name))
        except NotFound as error:
            raise Unavailable(f"the stream {name} does not exist yet") from error


def identity_of(name: str, instance: str, prefix: str) -> ServiceIdentity:
    """Identity of a process for `nats micro ls`: name and description of its package, and its replica."""
    version, summary = "0.0.0", ""
    try:
        package = metadata.metadata(f"gardenbus-{name}")
    except metadata.PackageNotFoundError:
        pass
    else:
        summary = package["Summary"]
        version = package["Version"] if _SEMANTIC.fullmatch(package["Version"]) else version
    about = {"instance": instance, "pid": str(os.getpid()), "prefix": prefix}
    return ServiceIdentity(name, version, summary, about)
