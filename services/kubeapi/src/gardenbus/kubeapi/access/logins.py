"""Logins: who the bearer of a token, or the holder of a certificate, is.

A token is the user and password that the landscape issued, as JSON or as base64 of `user:password`, or a bootstrap
token `<id>.<secret>`. NATS decides if
they are valid, by a connection that is closed again: so what is revoked, or has ended, is decided in one place. Its
decision counts for some seconds. Or it is an ID token of an OpenID Connect provider (`id_tokens`). A certificate is of
an authority that the TLS server trusts. The names of these two are read here, and the revocations.
"""

import asyncio
import base64
import binascii
import hashlib
import ssl
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.credentials import Login, login_credentials
from gardenbus.common.api.identity.bootstrap_tokens import is_token, parse_token
from gardenbus.common.api.identity.names import carried, certified
from gardenbus.common.api.identity.principals import PRINCIPAL_PREFIXES, Principal
from gardenbus.common.api.identity.revocations import Revocations
from gardenbus.common.errors import BadRequest, CredentialsRejected, GardenbusError, Unavailable
from gardenbus.common.ports.clock import Clock
from gardenbus.kubeapi.domain.acting_users import ActingUser

FRESH_SECONDS = 10.0
"""Time for which a login counts: what is revoked is let in no longer than that."""

STALE_SECONDS = 60.0
"""Time for which it counts while NATS cannot be reached."""

MOST_LOGINS = 10_000
AT_ONCE = 4
"""Logins that are checked at the same time; those that were valid before have as many places of their own: NATS takes
its time to reject, and strangers must not have others wait."""


class Unauthenticated(GardenbusError):
    """A request by whose credentials nobody is identified."""

    code = 401
    reason = "Unauthorized"


class User(NamedTuple):
    """Somebody who is logged in. `proof` is what it is checked by again: it is nobody's to read."""

    name: str
    groups: tuple[str, ...] = ()
    """Those that a provider states, or who impersonates this user; a name proves others."""
    proof: "Proof | None" = None
    impersonator: str = ""
    """The operator who sends requests as this user."""

    @property
    def acting(self) -> ActingUser:
        """The user in requests to the apiserver."""
        return ActingUser(self.name, self.groups, self.impersonator)


class Proof(NamedTuple):
    """A login; else the time of issue of a certificate or ID token, the serial number of the one, the other's end."""

    login: Login | None = None
    serial: str = ""
    issued_at: datetime | None = None
    expires_at: datetime | None = None


class _CachedLogin(NamedTuple):
    user: User | None
    at: float


class NamedByProvider(NamedTuple):
    """A person, as a provider's ID token names them, from when to when."""

    name: str
    groups: tuple[str, ...]
    issued_at: datetime | None
    expires_at: datetime


IdTokenAuthenticator = Callable[[str], Awaitable[NamedByProvider]]
"""Raises Unauthenticated for a token that does not hold, Unavailable when nobody can say."""

LoginAuthenticator = Callable[[Login], Awaitable[None]]
"""Raises CredentialsRejected for a login that is not valid, Unavailable when nobody can say."""


class Logins:
    """Finds users. One for all requests."""

    def __init__(
        self,
        check: LoginAuthenticator,
        revocations: Callable[[], Revocations],
        clock: Clock,
        named_by: IdTokenAuthenticator | None = None,
    ) -> None:
        self._check = check
        self._named_by = named_by
        self._revocations = revocations
        self._clock = clock
        self._cache: OrderedDict[bytes, _CachedLogin] = OrderedDict()
        self._slots = {was_valid: asyncio.Semaphore(AT_ONCE) for was_valid in (True, False)}
        self._running: dict[bytes, asyncio.Task[User | None]] = {}

    async def user_of(self, authorization: str, certificate: Mapping[str, Any] | None) -> User | None:
        """The user of a request; None where nothing says who it is. Raises Unauthenticated, Unavailable."""
        if not authorization:
            return self._by_certificate(certificate) if certificate else None
        if self._named_by is not None and is_id_token(token := bearer_token(authorization)):
            return self._by_provider(await self._named_by(token))
        return await self._by_login(read_token(authorization))

    def needs_revocations(self, authorization: str, certificate: Mapping[str, Any] | None) -> bool:
        """True for credentials whose revocations are read here, and not by NATS."""
        if not authorization:
            return certificate is not None
        return self._named_by is not None and is_id_token(bearer_token(authorization))

    async def by_token(self, token: str) -> User:
        """The user of a bearer's token. Raises Unauthenticated, Unavailable."""
        user = await self.user_of(f"Bearer {token}", None)
        assert user is not None
        return user

    async def is_valid(self, user: User) -> bool:
        """True while a user is still let in. Raises Unavailable."""
        proof = user.proof
        if proof is None:
            return True
        if proof.expires_at is not None and proof.expires_at <= self._clock.now():
            return False
        if proof.login is None:
            return not self._revocations().rejects(user.name, proof.serial, proof.issued_at)
        try:
            await self._by_login(proof.login)
        except Unauthenticated:
            return False
        return True

    def _by_provider(self, named: NamedByProvider) -> User:
        if self._revocations().rejects(named.name, issued_at=named.issued_at):
            raise Unauthenticated(f"the credentials of {named.name} were revoked")
        return User(named.name, named.groups, Proof(issued_at=named.issued_at, expires_at=named.expires_at))

    def _by_certificate(self, certificate: Mapping[str, Any]) -> User:
        subject = [pair for part in certificate.get("subject", ()) for pair in part]
        names = [value for name, value in subject if name == "commonName"]
        organizations = tuple(value for name, value in subject if name == "organizationName")
        try:
            principal = certified(names[0] if names else "", organizations)
        except BadRequest as error:
            raise Unauthenticated(f"the certificate is not accepted: {error.message}") from error
        serial = str(certificate.get("serialNumber", "")).lower()
        issued_at = datetime.fromtimestamp(ssl.cert_time_to_seconds(certificate["notBefore"]), UTC)
        if self._revocations().rejects(principal.user, serial, issued_at):
            raise Unauthenticated(f"the credentials of {principal.user} were revoked")
        return _user(principal, Proof(serial=serial, issued_at=issued_at))

    async def _by_login(self, login: Login) -> User:
        digest = hashlib.sha256(msgspec.json.encode(login)).digest()
        cached, now = self._cache.get(digest), self._clock.monotonic()
        if cached is None or now - cached.at >= FRESH_SECONDS:
            cached = await self._checked(digest, login, cached, now)
        if cached.user is None:
            raise Unauthenticated("the token is not valid")
        return cached.user

    async def _checked(self, digest: bytes, login: Login, cached: _CachedLogin | None, now: float) -> _CachedLogin:
        task = self._running.get(digest)
        if task is None:
            task = self._running[digest] = asyncio.create_task(
                self._user(login, was_valid=cached is not None and cached.user is not None), name="login"
            )
            task.add_done_callback(lambda _: self._running.pop(digest, None))
        try:
            user = await asyncio.shield(task)
        except Unavailable:
            if cached is not None and cached.user is not None and now - cached.at < STALE_SECONDS:
                return cached
            raise
        self._cache.pop(digest, None)
        self._cache[digest] = found = _CachedLogin(user, self._clock.monotonic())
        while len(self._cache) > MOST_LOGINS:
            self._cache.popitem(last=False)
        return found

    async def _user(self, login: Login, *, was_valid: bool) -> User | None:
        async with self._slots[was_valid]:
            try:
                principal = carried(login.user)
                await self._check(login)
            except (BadRequest, CredentialsRejected):
                return None
        return _user(principal, Proof(login))


def _user(principal: Principal, proof: Proof) -> User:
    return User(principal.user, proof=proof)


def is_id_token(token: str) -> bool:
    """True for the form of a signed JWT."""
    return token.count(".") == 2 and token.startswith("ey")  # noqa: PLR2004 - header, claims, signature


def bearer_token(authorization: str) -> str:
    """The token of a header `Authorization: Bearer`; "" of any other."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def read_token(authorization: str) -> Login:
    """The user and password of a header `Authorization`. Raises Unauthenticated."""
    scheme, _, token = authorization.partition(" ")
    token = token.strip()
    try:
        if scheme.lower() not in ("bearer", "basic"):
            raise Unauthenticated(f"Authorization: {scheme[:20]!r} is neither Bearer nor Basic")
        if token.startswith("{"):
            return msgspec.json.decode(token, type=Login)
        if is_token(token):
            bootstrap = parse_token(token)
            return Login(bootstrap.user, bootstrap.secret)
        user, colon, password = _parted(base64.b64decode(token, validate=True).decode())
    except (msgspec.MsgspecError, binascii.Error, ValueError) as error:
        raise Unauthenticated("the token is none that the landscape has issued") from error
    if not colon:
        raise Unauthenticated("the token is none that the landscape has issued")
    return Login(user, password)


def _parted(login: str) -> tuple[str, str, str]:
    """User, colon and password; the name of a gardenlet and the like has a colon of its own, as `seed:aws`."""
    role, colon, rest = login.partition(":")
    if f"{role}:" in PRINCIPAL_PREFIXES and ":" in rest:
        name, colon, password = rest.partition(":")
        return f"{role}:{name}", colon, password
    return role, colon, rest


def nats_check(url: str, name: str, ca: str | None) -> LoginAuthenticator:
    """A check that connects to NATS with a login, and closes the connection again."""

    async def check(login: Login) -> None:
        connection = Connection()
        try:
            await connection.open(
                url,
                name,
                on_reconnect=lambda: None,
                credentials=login_credentials(login, ca),
                fails_unauthorized=True,
                fails_unreachable=True,
            )
        finally:
            await connection.close()

    return check
