"""Watch over NATS' certificate while a landscape runs: renewed before it ends, and read anew when it is another."""

import asyncio
import time
from collections.abc import Callable

from gardenbus.common.errors import SettingsInvalid
from gardenbus.embedded.identities import EmbeddedIdentities

POLL_SECONDS = 1.0
CHECK_SECONDS = 3600.0
"""Interval at which the certificate is checked though nobody has changed it: it ends some day."""


async def keep_certificate(
    identities: EmbeddedIdentities,
    reload: Callable[[], None],
    *,
    notify: Callable[[str], None] = lambda _: None,
    poll_seconds: float = POLL_SECONDS,
) -> None:
    """Look after the certificate for ever; `reload` has the servers read it, `notify` receives what is in the way.

    Files that change are left alone until they stay as they are: certificate and key are two, and one comes first.
    """
    read = seen = identities.server_certificate_version
    checked_at = time.monotonic()
    while True:
        await asyncio.sleep(poll_seconds)
        version = identities.server_certificate_version
        if version != seen:
            seen = version
            continue
        if version == read and time.monotonic() - checked_at < CHECK_SECONDS:
            continue
        checked_at = time.monotonic()
        try:
            identities.keep_server_certificate()
        except (SettingsInvalid, OSError) as error:
            notify(f"NATS' certificate cannot be replaced: {error}")
        seen = identities.server_certificate_version
        if seen != read:
            read = seen
            reload()
