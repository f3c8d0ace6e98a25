"""What protects the page: which names it may be called by, what a page may load, and who may change something.

A browser that shows a foreign page can be made to call this address. So nothing is answered to a name that is not
ours (DNS rebinding), and what changes something needs a header that only the page itself can know (CSRF).
"""

import secrets
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN_HEADER = "X-Gardenbus-Token"  # noqa: S105 - its name
READING = frozenset({"GET", "HEAD"})

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


class Guard:
    """Refuses what must not be answered, and puts the headers on what is.

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

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers[name] = value
                if scope["path"].startswith("/api/"):
                    headers["Cache-Control"] = "no-store"
            await send(message)

        refusal = self.refusal(scope["method"], scope["scheme"], Headers(scope=scope))
        if refusal is not None:
            code, message = refusal
            body = {"error": {"code": code, "reason": "Forbidden", "message": message}}
            await JSONResponse(body, status_code=code)(scope, receive, guarded)
            return
        await self._app(scope, receive, guarded)

    def refusal(self, method: str, scheme: str, headers: Headers) -> tuple[int, str] | None:
        """Why a request is refused (status and sentence), or None."""
        host = headers.get("host", "")
        if "*" not in self._allowed_hosts and host_name(host) not in self._allowed_hosts:
            return 421, f"this dashboard is not called {host!r}: see GARDENBUS_DASHBOARD_ALLOWED_HOSTS"
        if method in READING:
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
    """The name in a Host header, without its port, in lower case."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
    return f"[{name}]" if ":" in name else name
