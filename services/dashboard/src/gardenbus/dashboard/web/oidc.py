"""Login at an OpenID Connect provider: authorization code with PKCE, by Authlib; the ID token is checked by joserfc.

What belongs to one attempt (state, nonce, code verifier) travels in a signed cookie, so that any replica can finish it.
The provider's metadata and keys are read at each login: logins are rare, and keys rotate.
"""

import secrets
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

import httpx2
import structlog
from authlib.integrations.base_client import OAuthError
from authlib.integrations.httpx_client import AsyncOAuth2Client
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from gardenbus.common.api.identity.id_tokens import ALGORITHMS, CLOCK_LEEWAY_SECONDS, is_for, user_named
from gardenbus.common.errors import Forbidden, SettingsInvalid, Unavailable
from gardenbus.common.ports.clock import Clock
from gardenbus.dashboard.settings import DashboardSettings
from gardenbus.dashboard.web.sessions import Sessions
from gardenbus.diagnostics.login_keys import new_claims
from gardenbus.diagnostics.login_tokens import Claims, signed, verified

FLOW_COOKIE = "gardenbus-oidc"
FLOW_LIFE = timedelta(minutes=10)
TIMEOUT_SECONDS = 8.0

_log = structlog.stdlib.get_logger()


class Provider(NamedTuple):
    """A provider, and this dashboard's registration there."""

    issuer: str
    client_id: str
    client_secret: str
    redirect_url: str
    user_claim: str


class _Flow(Claims, frozen=True):
    """One attempt. Its user is the dashboard: nobody has been named yet."""

    state: str = ""
    nonce: str = ""
    verifier: str = ""


def provider_of(settings: DashboardSettings) -> Provider:
    """The provider that the settings name. Raises SettingsInvalid when the secret cannot be read."""
    secret, file = "", settings.dashboard_oidc_client_secret_file
    if file:
        try:
            secret = Path(file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsInvalid((f"GARDENBUS_DASHBOARD_OIDC_CLIENT_SECRET_FILE: {error}",)) from error
    return Provider(
        issuer=settings.dashboard_oidc_issuer,
        client_id=settings.dashboard_oidc_client_id,
        client_secret=secret,
        redirect_url=f"{settings.dashboard_public_url.rstrip('/')}/oidc/callback",
        user_claim=settings.dashboard_oidc_user_claim,
    )


class OpenIdConnect:
    """Sends browsers to the provider, and reads the user that it names."""

    def __init__(self, provider: Provider, sessions: Sessions, clock: Clock) -> None:
        self._provider = provider
        self._sessions = sessions
        self._clock = clock

    async def begin(self) -> Response:
        """Send the browser to the provider. Raises Unavailable."""
        flow = _Flow(
            *_fields(new_claims(self._clock, "dashboard", FLOW_LIFE)),
            state=secrets.token_urlsafe(24),
            nonce=secrets.token_urlsafe(24),
            verifier=secrets.token_urlsafe(48),
        )
        async with _http() as http, self._client() as client:
            metadata = await self._metadata(http)
            url, _state = cast(
                "tuple[str, str]",
                client.create_authorization_url(
                    _endpoint(metadata, "authorization_endpoint"),
                    state=flow.state,
                    nonce=flow.nonce,
                    code_verifier=flow.verifier,
                ),
            )
        response = RedirectResponse(url, status_code=303)
        token = signed(self._sessions.key, "flow", flow)
        self._sessions.set_cookie(response, FLOW_COOKIE, token, FLOW_LIFE, is_for_navigation=True)
        return response

    async def finish(self, request: Request) -> Claims:
        """Read what the browser brings back. Raises Forbidden, Unavailable."""
        query = request.query_params
        try:
            flow = verified(self._sessions.key, "flow", request.cookies.get(FLOW_COOKIE, ""), self._clock.now(), _Flow)
        except Forbidden as error:
            raise Forbidden(f"this login did not begin in this browser: {error.message}. Begin again") from error
        if not secrets.compare_digest(query.get("state", "").encode(), flow.state.encode()):
            raise Forbidden("this response belongs to another login: start again")
        if query.get("iss", self._provider.issuer) != self._provider.issuer:
            raise Forbidden(f"this response is from another provider than {self._provider.issuer}")
        if "code" not in query:
            reason = query.get("error_description") or query.get("error") or "without a reason"
            raise Forbidden(f"the provider rejected the login: {reason[:200]}")
        async with _http() as http, self._client() as client:
            metadata = await self._metadata(http)
            token = await self._token(client, metadata, query["code"], flow)
            keys = await _read(http, _endpoint(metadata, "jwks_uri"))
        claims = self._checked(str(token.get("id_token") or ""), keys, flow)
        return Claims(user=user_named(claims, self._provider.user_claim), id=flow.id, expires=flow.expires)

    def _client(self) -> Any:
        provider = self._provider
        client: Any = AsyncOAuth2Client  # it has no types
        return client(
            provider.client_id,
            provider.client_secret or None,
            token_endpoint_auth_method="client_secret_basic" if provider.client_secret else "none",
            scope="openid email profile",
            redirect_uri=provider.redirect_url,
            code_challenge_method="S256",
            timeout=TIMEOUT_SECONDS,
        )

    async def _metadata(self, http: httpx2.AsyncClient) -> dict[str, Any]:
        issuer = self._provider.issuer
        metadata = await _read(http, f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if metadata.get("issuer") != issuer:
            raise Unavailable(f"the provider calls itself {metadata.get('issuer')!r}, not {issuer!r}")
        return metadata

    async def _token(self, client: Any, metadata: dict[str, Any], code: str, flow: _Flow) -> dict[str, Any]:
        try:
            return await client.fetch_token(
                _endpoint(metadata, "token_endpoint"),
                grant_type="authorization_code",
                code=code,
                code_verifier=flow.verifier,
            )
        except OAuthError as error:
            raise Forbidden(f"the provider rejected the login: {error.error}") from error
        except httpx2.HTTPError as error:
            raise Unavailable(f"the provider does not respond: {type(error).__name__}") from error

    def _checked(self, id_token: str, keys: dict[str, Any], flow: _Flow) -> dict[str, Any]:
        """The claims of an ID token that is of the provider, for this dashboard and this login. Raises Forbidden."""
        provider = self._provider
        registry = jwt.JWTClaimsRegistry(
            now=int(self._clock.now().timestamp()),
            leeway=CLOCK_LEEWAY_SECONDS,
            iss={"essential": True, "value": provider.issuer},
            aud={"essential": True, "value": provider.client_id},
            exp={"essential": True},
            nonce={"essential": True, "value": flow.nonce},
        )
        try:
            token = jwt.decode(id_token, KeySet.import_key_set(cast("Any", keys)), algorithms=list(ALGORITHMS))
            registry.validate(token.claims)
        except (JoseError, ValueError, KeyError, TypeError) as error:
            raise Forbidden(f"the provider's ID token does not hold: {error}") from error
        if not is_for(provider.client_id, token.claims):
            raise Forbidden("the provider's ID token is for another client")
        return token.claims


def _fields(claims: Claims) -> tuple[str, str, int]:
    return claims.user, claims.id, claims.expires


def _http() -> httpx2.AsyncClient:
    return httpx2.AsyncClient(timeout=TIMEOUT_SECONDS)


def _endpoint(metadata: dict[str, Any], name: str) -> str:
    """An endpoint of the provider. Raises Unavailable for one that it does not have, or that is not encrypted."""
    url = str(metadata.get(name) or "")
    own = urlsplit(str(metadata["issuer"])).scheme
    if urlsplit(url).scheme not in ("https", own):
        raise Unavailable(f"the provider has no {name} over https")
    return url


async def _read(http: httpx2.AsyncClient, url: str) -> dict[str, Any]:
    """A JSON object of the provider. Raises Unavailable."""
    try:
        response = await http.get(url)
        response.raise_for_status()
        found = response.json()
    except (httpx2.HTTPError, ValueError) as error:
        _log.warning("provider.unreadable", url=url, reason=str(error))
        raise Unavailable(f"the provider does not respond: {type(error).__name__} at {url}") from error
    if not isinstance(found, dict):
        raise Unavailable(f"the provider returned no object at {url}")
    return cast("dict[str, Any]", found)
