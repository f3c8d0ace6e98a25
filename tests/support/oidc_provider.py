"""A small OpenID Connect provider on the loopback: authorization code with PKCE, keys of its own, no password asked."""

import asyncio
import base64
import contextlib
import hashlib
import secrets
from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import parse_qsl, urlencode

import uvicorn
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.support.servers import free_port

CLIENT, SECRET = "gardenbus", "the client's secret"
LIFE_SECONDS = 300


class OidcProvider:
    """Names everybody who comes `claims`. What a test changes here is what a false or broken provider would do."""

    def __init__(self, url: str) -> None:
        self.issuer = url
        self.now = 0
        self.claims: dict[str, Any] = {"sub": "1", "email": "Ann@example.org", "email_verified": True}
        self.overrides: dict[str, Any] = {}
        """Claims of the ID token that are other than they should be; None leaves one out."""
        self.signs_with: ECKey | OctKey | None = None
        self.key = ECKey.generate_key("P-256", {"kid": "one", "alg": "ES256", "use": "sig"})
        self.key_reads = 0
        self.padding = ""
        """Text by which the keys come in more than one segment."""
        self.codes: dict[str, dict[str, str]] = {}
        self.app = Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self._metadata),
                Route("/authorize", self._authorize),
                Route("/token", self._token, methods=["POST"]),
                Route("/keys", self._keys),
            ]
        )

    async def _metadata(self, _: Request) -> Response:
        endpoints = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
        urls = {name: f"{self.issuer}/{path}" for name, path in endpoints.items()}
        return JSONResponse({"issuer": self.issuer, **urls})

    async def _keys(self, _: Request) -> Response:
        self.key_reads += 1
        return JSONResponse({"padding": self.padding, **KeySet([self.key]).as_dict(private=False)})

    async def _authorize(self, request: Request) -> Response:
        query = dict(request.query_params)
        if (query["response_type"], query["client_id"], query["code_challenge_method"]) != ("code", CLIENT, "S256"):
            return JSONResponse({"error": "invalid_request"}, status_code=400)
        code = secrets.token_urlsafe(8)
        self.codes[code] = query
        response = urlencode({"code": code, "state": query["state"], "iss": self.issuer})
        return RedirectResponse(f"{query['redirect_uri']}?{response}", status_code=302)

    async def _token(self, request: Request) -> Response:
        form = dict(parse_qsl((await request.body()).decode()))
        basic = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if request.headers.get("authorization") != f"Basic {basic}":
            return JSONResponse({"error": "invalid_client"}, status_code=401)
        requested = self.codes.pop(str(form["code"]), None)
        digest = hashlib.sha256(str(form.get("code_verifier", "")).encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if (
            requested is None
            or challenge != requested["code_challenge"]
            or form["redirect_uri"] != requested["redirect_uri"]
        ):
            return JSONResponse({"error": "invalid_grant"}, status_code=400)
        token = self.id_token(nonce=requested["nonce"])
        return JSONResponse({"access_token": "a", "token_type": "Bearer", "id_token": token})

    def id_token(self, **more: Any) -> str:
        """An ID token for the client, with these claims besides."""
        times = {"iat": self.now, "exp": self.now + LIFE_SECONDS}
        claims = {"iss": self.issuer, "aud": CLIENT, **times, **more, **self.claims, **self.overrides}
        key = self.signs_with or self.key
        header = {"alg": "HS256" if isinstance(key, OctKey) else "ES256", "kid": key.kid or "one"}
        existing = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(header, existing, key, algorithms=[header["alg"]])


@contextlib.asynccontextmanager
async def running_provider() -> AsyncGenerator[OidcProvider]:
    """A provider that answers."""
    port = free_port()
    provider = OidcProvider(f"http://127.0.0.1:{port}")
    configuration = uvicorn.Config(provider.app, port=port, log_config=None, lifespan="off", ws="none")
    server = uvicorn.Server(configuration)
    serving = asyncio.create_task(server._serve())  # pyright: ignore[reportPrivateUsage]  no signals
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield provider
    finally:
        server.should_exit = True
        await serving
