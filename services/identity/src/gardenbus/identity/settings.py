"""Settings of the identity service."""

from functools import partial
from typing import Annotated

import msgspec

from gardenbus.common.runtime.settings import CommonSettings, load


class IdentitySettings(CommonSettings, frozen=True, kw_only=True):
    """Settings of an identity process."""

    callout_credentials: str = "/etc/gardenbus/identity/callout.nk"
    """File of the nkey by which it answers callouts (the user of the account AUTH)."""

    issuer_key: str = "/etc/gardenbus/identity/issuer.nk"
    """File of the account nkey that signs its answers."""

    authorities: str = "/etc/gardenbus/identity/ca.crt"
    """File of the certificate authorities whose clients may come in, PEM; read anew when it changes."""

    session_seconds: Annotated[int, msgspec.Meta(ge=10, le=86_400)] = 3600
    """Longest life of a session; a client reconnects before."""


load_settings = partial(load, IdentitySettings)
"""Reads the environment; raises SettingsInvalid with all problems."""
