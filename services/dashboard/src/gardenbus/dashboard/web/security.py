"""Protection of the page: allowed host names, logins, content security policy, and CSRF tokens.

A foreign page in a browser can send requests to this address. So requests with foreign host names are rejected (DNS
rebinding), and changes need a header that only the page itself can know (CSRF). Where people log in, nothing but the
way to do so is served without a session.
"""

import secrets
from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gardenbus.common.api.numbers import whole_number
from gardenbus.common.errors import Unavailable
from gardenbus.dashboard.web.body_limit import (
    CLOSING,
    MOST_BODY_BYTES,
    MOST_BODY_BYTES_BEFORE_LOGIN,
    RequestEntityTooLarge,
    limited,
    too_large,
)
from gardenbus.dashboard.web.sessions import Session, Sessions

TOKEN_HEADER = "X-Gardenbus-Token"  # noqa: S105 - its name
SAFE_METHODS = frozenset({"GET", "HEAD"})
LOGIN_BY_LINK = "/api/login"
LOG_OUT = "/api/logout"
UNAUTHORIZED = 401
_REASONS = {
    UNAUTHORIZED: "Unauthorized",
    Unavailable.code: Unavailable.reason,
    RequestEntityTooLarge.code: RequestEntityTooLarge.reason,
}
PUBLIC_PATHS = frozenset({"/login", LOGIN_BY_LINK, "/oidc/start", "/oidc/callback"})
"""Served without a session, as are the static files."""

_DIRECTIVES = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
)
CONTENT_SECURITY_POLICY = "; ".join(_DIRECTIVES)

SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


@dataclass(eq=False)
class SecurityMiddleware:
    """Rejects forbidden requests, and adds the security headers to all responses.

    `allowed_hosts` are names without ports, `*` for any. Without `sessions` everybody has the session `nobodys`.
    Handlers find the session in the request's state.
    """

    app: ASGIApp
    _: KW_ONLY
    allowed_hosts: Collection[str]
    allows_writes: bool
    nobodys: Session
    sessions: Sessions | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers[name] = value
                if scope["path"].startswith("/api/"):
                    headers["Cache-Control"] = "no-store"
            await send(message)

        path, headers = scope["path"], Headers(scope=scope)
        session: Session | None = None
        try:
            session = await self._session(headers)
            rejection = self.rejection(scope["method"], path, headers, session, scheme=scope["scheme"])
        except Unavailable as error:
            rejection = HttpRejection(error.code, error.message)
        most = MOST_BODY_BYTES if session is not None else MOST_BODY_BYTES_BEFORE_LOGIN
        if rejection is None and whole_number(headers.get("content-length", "0"), most + 1) > most:
            rejection = HttpRejection(RequestEntityTooLarge.code, too_large(most))
        if rejection is None:
            scope.setdefault("state", {})["session"] = session
            await self.app(scope, limited(receive, most), send_with_headers)
        elif rejection.code == UNAUTHORIZED and not path.startswith("/api/"):
            await RedirectResponse("/login", status_code=303)(scope, receive, send_with_headers)
        else:
            reason = _REASONS.get(rejection.code, "Forbidden")
            body = {"error": {"code": rejection.code, "reason": reason, "message": rejection.message}}
            response = JSONResponse(body, status_code=rejection.code, headers=CLOSING)
            await response(scope, receive, send_with_headers)

    async def _session(self, headers: Headers) -> Session | None:
        if self.sessions is None:
            return self.nobodys
        return await self.sessions.session(headers.get("cookie", ""))

    def rejection(
        self, method: str, path: str, headers: Headers, session: Session | None, *, scheme: str
    ) -> "HttpRejection | None":
        """Return why a request is rejected, or None."""
        host = headers.get("host", "")
        if "*" not in self.allowed_hosts and host_name(host) not in self.allowed_hosts:
            return HttpRejection(421, f"this dashboard is not called {host!r}: see GARDENBUS_DASHBOARD_ALLOWED_HOSTS")
        is_public = self.sessions is not None and (path in PUBLIC_PATHS or path.startswith("/static/"))
        if session is None and not is_public:
            return HttpRejection(UNAUTHORIZED, "log in: run `gardenbus dashboard` and open the link that it prints")
        if method in SAFE_METHODS:
            return None
        if not self.allows_writes and path not in (LOGIN_BY_LINK, LOG_OUT):
            return HttpRejection(403, "this dashboard only shows: start it with GARDENBUS_DASHBOARD_ALLOW_WRITES=true")
        if headers.get("origin", f"{scheme}://{host}") != f"{scheme}://{host}":
            return HttpRejection(403, "this request comes from a foreign page")
        if headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return HttpRejection(403, "this request comes from a foreign page")
        return None if is_public else _without_its_token(headers, session)


class HttpRejection(NamedTuple):
    """Status and message."""

    code: int
    message: str


def _without_its_token(headers: Headers, session: Session | None) -> HttpRejection | None:
    expected = session.page_token if session else None
    if expected is None or not secrets.compare_digest(headers.get(TOKEN_HEADER, "").encode(), expected.encode()):
        return HttpRejection(403, f"the header {TOKEN_HEADER} is missing or stale: load the page again")
    return None


def host_name(host: str) -> str:
    """Return the name in a Host header, without its port, in lower case."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
    return f"[{name}]" if ":" in name else name
