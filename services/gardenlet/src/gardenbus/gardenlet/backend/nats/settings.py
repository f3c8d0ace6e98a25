"""`backend.options` of the backend `nats`."""

import msgspec

from gardenbus.common.api.document import Document
from gardenbus.common.errors import SettingsInvalid


class NatsSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Limits of the requests."""

    timeout_seconds: float = 60.0
    """Time within which a response must come; what takes longer responds `again`."""

    concurrent_requests: int = 20
    """Requests of this seed that wait for their responses at once."""

    kubernetes_version: str = "1.34.1"
    """Kubernetes version that the Seed's status names."""


def read_settings(options: Document, *, where: str) -> NatsSettings:
    """Read the options. Raises SettingsInvalid with everything that is wrong, after `where`."""
    try:
        settings = msgspec.convert(options, NatsSettings)
    except msgspec.ValidationError as error:
        raise SettingsInvalid((f"{where}: {error}",)) from error
    problems = tuple(
        f"{where}.{name}: must be more than zero"
        for name, value in (
            ("timeoutSeconds", settings.timeout_seconds),
            ("concurrentRequests", settings.concurrent_requests),
        )
        if value <= 0
    )
    if problems:
        raise SettingsInvalid(problems)
    return settings
