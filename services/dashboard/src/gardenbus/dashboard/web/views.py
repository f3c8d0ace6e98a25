"""Hands each request to the part of the landscape that its user may read: pages, lists and changes are made of that.

Operators, and viewers of the landscape, share the whole. Everybody else has a cache of their own rows, which is there
while somebody looks.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from gardenbus.common.api.identity.readable import Readable
from gardenbus.common.controller.wait import forever
from gardenbus.common.errors import GardenbusError, TooManyRequests
from gardenbus.common.ports.clock import Clock
from gardenbus.dashboard.watch.filtered import FilteredCache
from gardenbus.dashboard.watch.landscape import DashboardCache
from gardenbus.dashboard.web.acting import session_of
from gardenbus.dashboard.web.change_feed import BATCH_SECONDS, BEAT_SECONDS, ChangeFeed
from gardenbus.dashboard.web.rights import Rights

IDLE_SECONDS = 60.0
"""Time after its last request for which a view is kept."""

MOST_VIEWS = 200

KEPT_BYTES_OF_A_PART = 256 * 1024
"""Retained batches of one view; there may be many."""

BuildApp = Callable[[Readable, DashboardCache, ChangeFeed], ASGIApp]
"""The handlers of one part of the landscape."""


class RoleWithdrawn(GardenbusError):
    """A user who logged in has lost all roles since: pages that are open lead back to the login."""

    code = 401
    reason = "Unauthorized"


@dataclass(slots=True, eq=False)
class _View:
    readable: Readable
    cache: FilteredCache
    changes: ChangeFeed
    app: ASGIApp
    used_at: float


class LandscapeViews:
    """The views of all users. `run` publishes the changes of those that are not the whole."""

    def __init__(
        self, build: BuildApp, *, cache: DashboardCache, changes: ChangeFeed, rights: Rights, clock: Clock
    ) -> None:
        self._build = build
        self._cache = cache
        self._changes = changes
        self.rights = rights
        self._clock = clock
        self._whole: dict[str, ASGIApp] = {}
        self._views: dict[str, _View] = {}
        self._beat_at = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. Raises TooManyRequests, Unavailable, RoleWithdrawn."""
        app = await self._app_of(session_of(Request(scope)).user)
        await app(scope, receive, send)

    async def run(self) -> NoReturn:
        """Publish changes to those who see a part, and end the views that nobody looks at, for ever."""
        self._beat_at = self._clock.monotonic()
        await forever(self._publish, period_seconds=BATCH_SECONDS, sleep=self._clock.sleep, is_immediate=False)

    def _publish(self) -> None:
        now = self._clock.monotonic()
        is_beat = now - self._beat_at >= BEAT_SECONDS
        self._beat_at = now if is_beat else self._beat_at
        for user, view in list(self._views.items()):
            view.changes.publish()
            if is_beat:
                view.changes.publish_heartbeats()
            if view.changes.listeners:
                view.used_at = now
            elif now - view.used_at > IDLE_SECONDS:
                self._end(user)

    def cut_all(self) -> None:
        """Disconnect all browsers: the process stops."""
        for changes in (self._changes, *(view.changes for view in self._views.values())):
            changes.cut_all()

    async def _app_of(self, user: str) -> ASGIApp:
        readable = await self.rights.of(user)
        if not readable.has_role:
            self._end(user)
            raise RoleWithdrawn(f"{user} has no role here any more")
        if readable.is_whole:
            self._end(user)
            if readable.role not in self._whole:
                self._whole[readable.role] = self._build(readable, self._cache, self._changes)
            return self._whole[readable.role]
        view = self._views.get(user)
        if view is None or view.readable != readable:
            self._end(user)
            view = self._views[user] = self._new(readable)
        view.used_at = self._clock.monotonic()
        return view.app

    def _new(self, readable: Readable) -> _View:
        if len(self._views) >= MOST_VIEWS:
            raise TooManyRequests("too many requests at once: try again later")
        cache = FilteredCache(self._cache, readable)
        changes = ChangeFeed(cache, self._clock, secrets.token_hex(4), kept_bytes=KEPT_BYTES_OF_A_PART)
        return _View(readable, cache, changes, self._build(readable, cache, changes), 0.0)

    def _end(self, user: str) -> None:
        view = self._views.pop(user, None)
        if view is not None:
            view.cache.end()
            view.changes.cut_all()
