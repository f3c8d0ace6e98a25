"""Protection of the page: allowed host names, content security policy, and CSRF tokens.

A foreign page in a browser can send requests to this address. So requests with foreign host names are rejected (DNS
rebinding), and changes need a header that only the page itself can know (CSRF).
"""

import secrets
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN_HEADER = "X-Gardenbus-Token"  # noqa: S105 - its name
SAFE_METHODS = frozenset({"GET", "HEAD"})

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


class SecurityMiddleware:
    """Rejects forbidden requests, and adds the security headers to all responses.

    `allowed_hosts` are names without ports, `*` for any; `token` is None where nothing may be changed.
    """

    def __init__(self, app: ASGIApp, *, allowed_hosts: Collection[str], token: str | None) -> None:
        self._app = app
        self._allowed_hosts = allowed_hosts
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers[name] = value
                if scope["path"].startswith("/api/"):
                    headers["Cache-Control"] = "no-store"
            await send(message)

        rejection = self.rejection(scope["method"], scope["scheme"], Headers(scope=scope))
        if rejection is not None:
            code, message = rejection
            body = {"error": {"code": code, "reason": "Forbidden", "message": message}}
            await JSONResponse(body, status_code=code)(scope, receive, send_with_headers)
            return
        await self._app(scope, receive, send_with_headers)

    def rejection(self, method: str, scheme: str, headers: Headers) -> tuple[int, str] | None:
        """Return status and message of a rejected request, or None."""
        host = headers.get("host", "")
        if "*" not in self._allowed_hosts and host_name(host) not in self._allowed_hosts:
            return 421, f"this dashboard is not called {host!r}: see GARDENBUS_DASHBOARD_ALLOWED_HOSTS"
        if method in SAFE_METHODS:
            return None
        if self._token is None:
            return 403, "this dashboard only shows: start it with GARDENBUS_DASHBOARD_ALLOW_WRITES=true"
        if headers.get("origin", f"{scheme}://{host}") != f"{scheme}://{host}":
            return 403, "this request comes from a foreign page"
        if headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return 403, "this request comes from a foreign page"
        if not secrets.compare_digest(headers.get(TOKEN_HEADER, "").encode(), self._token.encode()):
            return 403, f"the header {TOKEN_HEADER} is missing or stale: load the page again"
        return None


def host_name(host: str) -> str:
    """Return the name in a Host header, without its port, in lower case."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
    return f"[{name}]" if ":" in name else name
