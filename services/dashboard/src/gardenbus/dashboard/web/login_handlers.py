"""Request handlers of logging in and out.

A link is spent by an Event under its id: JetStream takes only the first message of a subject on that condition, so one
login comes of it at whichever replica, and every login stands among the Events.
"""

from dataclasses import dataclass
from typing import Protocol

import msgspec
import structlog
from starlette.requests import Request
from starlette.responses import Response

from gardenbus.common.api.decoding import decode_json
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.errors import BadRequest, Conflict, Forbidden
from gardenbus.common.ports.bus import Message
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.dashboard.api_client import GardenApiClient
from gardenbus.dashboard.watch.session_registry import LOGGED_IN, LOGGED_OUT
from gardenbus.dashboard.web.acting import session_of
from gardenbus.dashboard.web.files import StaticFiles
from gardenbus.dashboard.web.responses import json_response
from gardenbus.dashboard.web.rights import Rights
from gardenbus.dashboard.web.sessions import Sessions
from gardenbus.diagnostics.login_tokens import Claims

_log = structlog.stdlib.get_logger()

HOW = "run `gardenbus dashboard` and open the link that it prints"


class LinkToken(msgspec.Struct, frozen=True):
    """Body of a login by a link."""

    token: str = ""


class SignOn(Protocol):
    """Port to a login at an identity provider (OpenID Connect)."""

    async def begin(self) -> Response:
        """Send the browser there."""
        ...

    async def finish(self, request: Request) -> Claims:
        """Read what the browser brings back. Raises Forbidden, Unavailable."""
        ...


@dataclass(eq=False, kw_only=True)
class LoginHandlers:
    """Handlers of logins; a session begins with each that succeeds."""

    sessions: Sessions
    api: GardenApiClient
    rights: Rights
    clock: Clock
    files: StaticFiles
    sign_on: SignOn | None = None

    async def page(self, _: Request) -> Response:
        """Respond with the page that a login begins on."""
        return self.files.named("login.html")

    async def ways(self, _: Request) -> Response:
        """Respond with the ways to log in."""
        return json_response({"how": HOW, "hasSignOn": self.sign_on is not None})

    async def by_link(self, request: Request) -> Response:
        """Begin the session of a link. Raises BadRequest, Forbidden, Unavailable."""
        try:
            token = decode_json(await request.body(), LinkToken).token
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise BadRequest(f'send {{"token": …}}: {error}') from error
        try:
            claims = await self.sessions.link_claims(token)
        except Forbidden as error:
            raise Forbidden(f"this link is not valid: {error.message}. For a new one {HOW}") from error
        await self._admit(claims, "link")
        response = json_response({"user": claims.user})
        self.sessions.let_in(response, claims)
        return response

    async def begin_sign_on(self, _: Request) -> Response:
        """Send the browser to the provider. Raises BadRequest, Unavailable."""
        return await self._provider().begin()

    async def finish_sign_on(self, request: Request) -> Response:
        """Begin the session of the user that the provider names. Raises Forbidden, Unavailable.

        The browser comes from another site, so it does not send the new cookie with a redirect: a page of ours does
        that.
        """
        claims = await self._provider().finish(request)
        await self._admit(claims, "oidc")
        response = self.files.named("welcome.html")
        self.sessions.let_in(response, claims)
        return response

    async def log_out(self, request: Request) -> Response:
        """End the session of this browser, at every replica and for every copy of its cookie. Raises Unavailable."""
        session = session_of(request)
        await self.api.bus.publish(self._message(session.id, session.user, LOGGED_OUT, "logged out of the dashboard"))
        self.sessions.registry.end(session.user, session.id)
        _log.info("user.logged_out", user=session.user)
        response = json_response({"ok": True})
        self.sessions.let_out(response)
        return response

    def _provider(self) -> SignOn:
        if self.sign_on is None:
            raise BadRequest(f"this dashboard has no OpenID provider: {HOW}")
        return self.sign_on

    async def _admit(self, claims: Claims, way: str) -> None:
        """Spend what lets somebody in. Raises Forbidden the second time, and for those who have no role anywhere."""
        if not (await self.rights.of(claims.user)).has_role:
            raise Forbidden(f"{claims.user} has no role here: an operator, or an admin of a project, gives one")
        message = self._message(claims.id, claims.user, LOGGED_IN, f"logged in to the dashboard ({way})")
        try:
            await self.api.bus.publish(message, expected_subject_sequence=0)
        except Conflict as error:
            raise Forbidden(f"this login was used before: for a new one {HOW}") from error
        _log.info("user.logged_in", user=claims.user, way=way)

    def _message(self, session_id: str, user: str, reason: str, what: str) -> Message:
        """An Event about a login, which the registry of sessions reads at every replica."""
        key = ObjectKey("login", GARDEN_NAMESPACE, session_id)
        body = msgspec.json.encode(_event(key, user, reason, f"{user} {what}", timestamp(self.clock.now())))
        return Message(self.api.subjects.event(key), body)


def _event(key: ObjectKey, user: str, reason: str, message: str, at: str) -> dict[str, object]:
    suffix = "login" if reason == LOGGED_IN else "logout"
    metadata = {"name": f"{key.name}.{suffix}", "namespace": key.namespace, "creationTimestamp": at}
    about = {"apiVersion": "v1", "kind": "Login", "namespace": key.namespace, "name": key.name}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": metadata,
        "involvedObject": about,
        "related": {"kind": "User", "name": user},
        "type": "Normal",
        "reason": reason,
        "message": message,
        "reportingComponent": "dashboard",
        "count": 1,
        "firstTimestamp": at,
        "lastTimestamp": at,
    }
