"""ID tokens of an OpenID Connect provider, as kube-apiserver takes them with `--oidc-issuer-url`.

The provider's metadata and keys are read when the first token comes, every ten minutes, and at once for a key that is
not known yet (but not for each token of somebody who makes keys up). What was read counts on while the provider is
away.
"""

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

import aiohttp
import structlog
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet

from gardenbus.common.api.identity.id_tokens import (
    ALGORITHMS,
    CLOCK_LEEWAY_SECONDS,
    groups_named,
    is_for,
    user_named,
)
from gardenbus.common.errors import Forbidden, SettingsInvalid, Unavailable
from gardenbus.common.ports.clock import Clock
from gardenbus.kubeapi.access.logins import NamedByProvider, Unauthenticated

KEYS_SECONDS = 600.0
TIMEOUT_SECONDS = 8.0
MOST_BYTES = 1024 * 1024
LEAST_SECONDS = 10.0
"""Shortest interval between two reads of the provider's keys."""

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

ReadJson = Callable[[str], Awaitable[dict[str, Any]]]
"""Reads a JSON object by its URL. Raises Unavailable."""


class IdTokenIssuer(NamedTuple):
    """A provider, the client that its tokens are for, and the claims that name users and groups ("": no groups)."""

    url: str
    client_id: str
    user_claim: str
    groups_claim: str


class IdTokens:
    """Checks the tokens of one provider."""

    def __init__(self, issuer: IdTokenIssuer, read: ReadJson, clock: Clock) -> None:
        self._issuer = issuer
        self._read = read
        self._clock = clock
        self._keys: KeySet | None = None
        self._failure = ""
        """Reason why no keys were ever read: strangers' tokens do not have them read again at once."""
        self._read_at = -KEYS_SECONDS
        self._reading = asyncio.Lock()

    async def named(self, token: str) -> NamedByProvider:
        """The person that a token names. Raises Unauthenticated, Unavailable."""
        try:
            keys = await self._current_keys(KEYS_SECONDS)
            try:
                decoded = _decode(token, keys)
            except InvalidKeyIdError:
                decoded = _decode(token, await self._current_keys(LEAST_SECONDS))
            claims = decoded.claims
            self._registry().validate(claims)
        except (JoseError, ValueError, KeyError, TypeError) as error:
            raise Unauthenticated(f"the ID token does not hold: {error}") from error
        if not is_for(self._issuer.client_id, claims):
            raise Unauthenticated("the ID token is for another client")
        try:
            name = user_named(claims, self._issuer.user_claim)
        except Forbidden as error:
            raise Unauthenticated(error.message) from error
        issued = claims.get("iat")
        return NamedByProvider(
            name,
            groups_named(claims, self._issuer.groups_claim),
            datetime.fromtimestamp(issued, UTC) if isinstance(issued, int | float) else None,
            datetime.fromtimestamp(claims["exp"], UTC),
        )

    def _registry(self) -> jwt.JWTClaimsRegistry:
        return jwt.JWTClaimsRegistry(
            now=int(self._clock.now().timestamp()),
            leeway=CLOCK_LEEWAY_SECONDS,
            iss={"essential": True, "value": self._issuer.url},
            aud={"essential": True, "value": self._issuer.client_id},
            exp={"essential": True},
        )

    async def _current_keys(self, oldest_seconds: float) -> KeySet:
        """The provider's keys, read within so many seconds. Raises Unavailable where none were ever read."""
        if (cached := self._cached_keys(oldest_seconds)) is not None:
            return cached
        async with self._reading:
            if (cached := self._cached_keys(oldest_seconds)) is not None:
                return cached
            if self._failure and self._clock.monotonic() - self._read_at < LEAST_SECONDS:
                raise Unavailable(self._failure)
            try:
                self._keys, self._failure = await self._read_keys(), ""
            except Unavailable as error:
                if self._keys is None:
                    self._failure = error.message
                    raise
            finally:
                self._read_at = self._clock.monotonic()
            return self._keys

    def _cached_keys(self, oldest_seconds: float) -> KeySet | None:
        return self._keys if self._clock.monotonic() - self._read_at < oldest_seconds else None

    async def _read_keys(self) -> KeySet:
        url = self._issuer.url
        metadata = await self._read(f"{url.rstrip('/')}/.well-known/openid-configuration")
        if metadata.get("issuer") != url:
            raise Unavailable(f"the provider calls itself {metadata.get('issuer')!r}, not {url!r}")
        place = str(metadata.get("jwks_uri") or "")
        if urlsplit(place).scheme not in ("https", urlsplit(url).scheme):
            raise Unavailable("the provider has no jwks_uri over https")
        try:
            return KeySet.import_key_set(cast("Any", await self._read(place)))
        except (JoseError, ValueError, KeyError, TypeError) as error:
            raise Unavailable(f"the provider's keys cannot be read: {error}") from error


def provider_reader(session: aiohttp.ClientSession, ca: str) -> ReadJson:
    """Reads of the provider. `ca`: file of its authorities, PEM; "" for those of the system. Raises SettingsInvalid."""
    try:
        trust = ssl.create_default_context(cafile=ca or None)
    except (OSError, ssl.SSLError) as error:
        raise SettingsInvalid((f"GARDENBUS_KUBEAPI_OIDC_CA: {ca}: {error}",)) from error
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)

    async def read(url: str) -> dict[str, Any]:
        try:
            async with session.get(url, timeout=timeout, ssl=trust, allow_redirects=False) as response:
                response.raise_for_status()
                found = json.loads(await _whole(response))
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            _log.warning("provider.unreadable", url=url, reason=str(error) or type(error).__name__)
            raise Unavailable(f"the OpenID provider does not respond: {type(error).__name__} at {url}") from error
        if not isinstance(found, dict):
            raise Unavailable(f"the OpenID provider returned no object at {url}")
        return cast("dict[str, Any]", found)

    return read


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    """The body of a response. Raises ValueError for one that is too long."""
    body = b""
    async for part in response.content.iter_chunked(64 * 1024):
        body += part
        if len(body) > MOST_BYTES:
            raise ValueError(f"the response has more than {MOST_BYTES:,} bytes")
    return body


def _decode(token: str, keys: KeySet) -> jwt.Token:
    return jwt.decode(token, keys, algorithms=list(ALGORITHMS))
