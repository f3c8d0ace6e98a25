"""Sessions of people who have logged in: one signed cookie, nothing is kept here, so that every replica knows them."""

from datetime import timedelta
from http.cookies import CookieError, SimpleCookie
from typing import NamedTuple

from starlette.responses import Response

from gardenbus.common.api.identity.login_tokens import SESSION_LIFE, Claims, cookie_name, page_token, signed, verified
from gardenbus.common.errors import Forbidden
from gardenbus.common.ports.clock import Clock
from gardenbus.common.runtime.login_keys import new_claims


class Session(NamedTuple):
    """A user's session: what its pages send with a change, and its end (Unix seconds; 0: it does not end)."""

    user: str
    page_token: str | None
    expires: int = 0


class Sessions:
    """Lets people in, and knows them again."""

    def __init__(self, key: bytes, clock: Clock, *, is_encrypted: bool = False) -> None:
        self.key = key
        self._clock = clock
        self._is_encrypted = is_encrypted
        self._cookie = cookie_name(key)

    def session(self, cookies: str) -> Session | None:
        """The session in a Cookie header; None without one that holds."""
        try:
            morsel = SimpleCookie(cookies).get(self._cookie)
            claims = verified(self.key, "session", morsel.value if morsel else "", self._clock.now(), Claims)
        except (CookieError, Forbidden):
            return None
        return Session(claims.user, page_token(self.key, claims), claims.expires)

    def link_claims(self, token: str) -> Claims:
        """Claims of a link's token. Raises Forbidden; whether it was used before is not known here."""
        return verified(self.key, "link", token, self._clock.now(), Claims)

    def let_in(self, response: Response, user: str) -> None:
        """Begin a session."""
        claims = new_claims(self._clock, user, SESSION_LIFE)
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
