"""Settings of the identity service."""

from functools import partial
from typing import Annotated

import msgspec

from gardenbus.common.runtime.settings import CommonSettings, load


class IdentitySettings(CommonSettings, frozen=True, kw_only=True):
    """Settings of an identity process."""

    callout_credentials: str = "/etc/gardenbus/identity/callout.nk"
    """File of the nkey by which it responds to callouts (the user of the account AUTH)."""

    issuer_key: str = "/etc/gardenbus/identity/issuer.nk"
    """File of the account nkey that signs its responses."""

    authorities: str = "/etc/gardenbus/identity/ca.crt"
    """File of the certificate authorities whose clients may come in, PEM; read anew when it changes."""

    signing_certificate: str = "/etc/gardenbus/identity/ca.crt"
    """File of the authority's certificate that signs requests, PEM."""

    signing_key: str = ""
    """File of its key; without it this replica decides about no requests for certificates."""

    certificate_seconds: Annotated[int, msgspec.Meta(ge=60, le=31_536_000)] = 2_592_000
    """Longest life of a certificate that it signs, and the life of one whose request names none (30 days)."""

    system_credentials: str = ""
    """File of the nkey of the system account's user; without it nobody is disconnected before the session ends."""

    session_seconds: Annotated[int, msgspec.Meta(ge=10, le=86_400)] = 3600
    """Longest life of a session; a client reconnects before."""


load_settings = partial(load, IdentitySettings)
"""Reads the environment; raises SettingsInvalid with all problems."""
