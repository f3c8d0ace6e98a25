"""Authenticates a connection: by its certificate, its nkey or its password."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from cryptography import x509

from gardenbus.common.api.identity.issued_credentials import IssuedCredentials, has_password
from gardenbus.common.api.identity.names import carried
from gardenbus.common.api.identity.nkeys import verify
from gardenbus.common.api.identity.permissions import permissions_of
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.identity.revocations import Revocations
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import BadRequest, Forbidden
from gardenbus.identity.domain import proof
from gardenbus.identity.domain.tokens import AuthorizationRequest, Grant


class Facts(NamedTuple):
    """Facts at hand when a connection comes in."""

    authorities: Sequence[x509.Certificate]
    issued: Mapping[str, Sequence[IssuedCredentials]]
    """By user, and by nkey."""
    revoked: Revocations
    now: datetime


class Authenticated(NamedTuple):
    """A principal, and when its credential ends."""

    principal: Principal
    expires: datetime
    serial: str = ""
    """Of its certificate."""
    issued_at: datetime | None = None


def authenticate(request: AuthorizationRequest, facts: Facts) -> Authenticated:
    """Authenticate a connection. Raises Forbidden with the reason."""
    options = request.connect_opts
    try:
        if options.auth_token:
            nonce = request.client_info.nonce
            proven = proof.check(options.auth_token, options.sig, nonce, facts.authorities, facts.now)
            found = Authenticated(proven.principal, proven.expires, proven.serial, proven.issued_at)
        elif options.nkey:
            found = _by_nkey(request, facts)
        elif options.user:
            found = _by_password(options.user, options.password, facts)
        else:
            raise Forbidden("no credentials were sent")
    except BadRequest as error:
        raise Forbidden(error.message) from error
    if facts.revoked.rejects(found.principal.user, found.serial, found.issued_at):
        raise Forbidden(f"the credentials of {found.principal.user} were revoked")
    return found


def grant(authenticated: Authenticated, subjects: Subjects, now: datetime, session: timedelta) -> Grant:
    """Grant a principal its row of the table, until its credential or the session ends."""
    principal = authenticated.principal
    try:
        is_carried = carried(principal.user) == principal
    except BadRequest:
        is_carried = False
    if principal.account != "OUT" or not is_carried:
        raise Forbidden(f"{principal.user} has its credentials from the server's configuration, or is reserved")
    return Grant(
        name=principal.user,
        account=principal.account,
        permissions=permissions_of(principal, subjects),
        expires=int(min(authenticated.expires, now + session).timestamp()),
    )


def _by_nkey(request: AuthorizationRequest, facts: Facts) -> Authenticated:
    options, nonce = request.connect_opts, request.client_info.nonce
    for credentials in facts.issued.get(options.nkey, ()):
        if facts.now >= credentials.expires:
            raise Forbidden(f"the credentials of {credentials.principal.user} expired")
        if nonce and verify(options.nkey, nonce.encode(), _signature(options.sig)):
            return Authenticated(credentials.principal, credentials.expires, issued_at=credentials.issued_at)
        raise Forbidden("the nonce was not signed with the nkey")
    raise Forbidden("the nkey is not known")


def _by_password(user: str, password: str, facts: Facts) -> Authenticated:
    is_expired = False
    for credentials in facts.issued.get(user, ()):
        if has_password(credentials, password):
            if facts.now < credentials.expires:
                return Authenticated(credentials.principal, credentials.expires, issued_at=credentials.issued_at)
            is_expired = True
    raise Forbidden(f"the credentials of {user[:80]} expired" if is_expired else "user or password is wrong")


def _signature(text: str) -> bytes:
    try:
        return base64.b64decode(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError) as error:
        raise BadRequest("the signature is not base64") from error
