"""Sessions of people who have logged in: a signed cookie, which holds until the registry of sessions has its end."""

from datetime import UTC, datetime, timedelta
from http.cookies import CookieError, SimpleCookie
from typing import NamedTuple

from starlette.responses import Response

from gardenbus.common.errors import Forbidden
from gardenbus.common.ports.clock import Clock
from gardenbus.dashboard.watch.session_registry import SessionRegistry
from gardenbus.diagnostics.login_tokens import (
    LINK_LIFE,
    SESSION_LIFE,
    Claims,
    cookie_name,
    page_token,
    signed,
    verified,
)

CHECK_SECONDS = 1.0
"""Interval at which an open page looks if its session has ended."""


class Session(NamedTuple):
    """A user's session: what its pages send with a change, its end (Unix seconds; 0: it does not end), and its id."""

    user: str
    page_token: str | None
    expires: int = 0
    id: str = ""

    @property
    def issued_at(self) -> datetime:
        """Time of the login."""
        return datetime.fromtimestamp(self.expires, UTC) - SESSION_LIFE


class Sessions:
    """Lets people in, and knows them again."""

    def __init__(self, key: bytes, clock: Clock, registry: SessionRegistry, *, is_encrypted: bool = False) -> None:
        self.key = key
        self.registry = registry
        self._clock = clock
        self._is_encrypted = is_encrypted
        self._cookie = cookie_name(key)

    async def session(self, cookies: str) -> Session | None:
        """The session in a Cookie header; None without one that holds. Raises Unavailable when that cannot be told."""
        try:
            morsel = SimpleCookie(cookies).get(self._cookie)
            claims = verified(self.key, "session", morsel.value if morsel else "", self._clock.now(), Claims)
        except (CookieError, Forbidden):
            return None
        await self.registry.until_current()
        session = Session(claims.user, page_token(self.key, claims), claims.expires, claims.id)
        return session if self.registry.holds(session.user, session.id, session.issued_at) else None

    async def until_ended(self, session: Session) -> None:
        """Wait until a session has ended or was revoked, or nobody can tell any more."""
        while self.registry.is_current and self.registry.holds(session.user, session.id, session.issued_at):
            await self._clock.sleep(CHECK_SECONDS)

    async def link_claims(self, token: str) -> Claims:
        """Claims of a link's token. Raises Forbidden, Unavailable; whether it was used before is not known here."""
        claims = verified(self.key, "link", token, self._clock.now(), Claims)
        await self.registry.until_current()
        if self.registry.is_revoked(claims.user, datetime.fromtimestamp(claims.expires, UTC) - LINK_LIFE):
            raise Forbidden(f"the credentials of {claims.user} were revoked")
        return claims

    def let_in(self, response: Response, login: Claims) -> None:
        """Begin a session under the id of a login, which nobody has used before."""
        now = self._clock.now()
        claims = Claims(login.user, login.id, int((now + SESSION_LIFE).timestamp()))
        self.registry.begin(claims.user, claims.id, now)
        self.set_cookie(response, self._cookie, signed(self.key, "session", claims), SESSION_LIFE)

    def let_out(self, response: Response) -> None:
        """End a session in the browser."""
        response.delete_cookie(self._cookie, path="/", secure=self._is_encrypted, httponly=True, samesite="strict")

    def set_cookie(
        self, response: Response, name: str, value: str, life: timedelta, *, is_for_navigation: bool = False
    ) -> None:
        """Set a cookie that no script reads; no other site's page has it sent, unless it is for navigation from one."""
        response.set_cookie(
            name,
            value,
            max_age=int(life.total_seconds()),
            path="/",
            secure=self._is_encrypted,
            httponly=True,
            samesite="lax" if is_for_navigation else "strict",
        )
