"""Watches: from the cache, for whom the apiserver lets watch; reviewed again every few seconds while they go on."""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import NoReturn

from gardenbus.common.api.keys import LEASE_NAMESPACE
from gardenbus.common.errors import Forbidden, Unavailable
from gardenbus.kubeapi import metrics
from gardenbus.kubeapi.access.authorizer import AccessAttributes, DelegatingAuthorizer
from gardenbus.kubeapi.access.logins import Logins, Unauthenticated, User
from gardenbus.kubeapi.domain.list_options import list_options
from gardenbus.kubeapi.domain.statuses import Rejected
from gardenbus.kubeapi.requests.reads import included_in
from gardenbus.kubeapi.requests.responses import ApiRequest
from gardenbus.kubeapi.watch.cacher import Cacher
from gardenbus.kubeapi.watch.caches import Caches
from gardenbus.kubeapi.watch.seed_leases import SeedLeaseCaches
from gardenbus.kubeapi.watch.watchers import Watcher, Watchers, WatchForm

LEAST_SECONDS = 1800
"""Life of a watch without a timeout: so long, and at random up to twice that."""

REVIEW_SECONDS = 4.0
"""Interval of reviews of those who watch: with the time for which logins and decisions are cached, a right that is
withdrawn ends a watch within 15 s."""

BOOKMARK_REVIEWS = 15
"""Reviews between two bookmarks."""


class WatchServer:
    """Handles watches. `run` reviews those that go on, and sends bookmarks, for ever."""

    def __init__(
        self,
        authorizer: DelegatingAuthorizer,
        logins: Logins,
        caches: Caches,
        seed_leases: SeedLeaseCaches,
        now: Callable[[], datetime],
        *,
        most: int,
    ) -> None:
        self._seed_leases = seed_leases
        self._authorizer = authorizer
        self._logins = logins
        self._caches = caches
        self._now = now
        self._most = most
        self._watchers = Watchers()
        self._owners: dict[Watcher, tuple[User, AccessAttributes]] = {}
        self._caches_of: dict[Watcher, Cacher] = {}
        for cache in (caches.objects, caches.events):
            cache.on_reset(lambda cache=cache: self._expire(cache))
        metrics.WATCHES.set_function(lambda: self.running)

    @property
    def running(self) -> int:
        """Watches that go on."""
        return len(self._watchers)

    def _expire(self, cache: Cacher) -> None:
        self._watchers.expire(cache, self._caches_of.__getitem__)

    @asynccontextmanager
    async def _followed(self, kind: str, namespace: str, name: str) -> AsyncGenerator[Cacher]:
        """The cache of what is watched: of a kind, or of the one Lease of a seed."""
        if (kind, namespace) == ("lease", LEASE_NAMESPACE) and name:
            async with self._seed_leases.followed(name, self._expire) as cache:
                await self._caches.until_read(cache)
                yield cache
            return
        cache = self._caches.of(kind)
        await self._caches.until_read(cache)
        yield cache

    @asynccontextmanager
    async def open(self, request: ApiRequest) -> AsyncGenerator[tuple[Watcher, float]]:
        """A watch that has begun, and its longest life in seconds.

        Raises Forbidden, ResourceExpired, BadRequest, Rejected, Unavailable.
        """
        info, user = request.info, request.user
        options = list_options(info.query, watch=True)
        attributes = AccessAttributes.of_list(user.acting, "watch", info)
        await self._authorizer.require(attributes)
        if len(self._watchers) >= self._most:
            raise Rejected(429, "TooManyRequests", f"there are {self._most} watches: try again")
        form = WatchForm(request.accepted.form, included_in(request))
        watcher = Watcher(info.resource, info.namespace, options, form, self._now)
        async with self._followed(info.resource.singular, info.namespace, options.name) as cache:
            end = watcher.start(cache)
            self._watchers.add(watcher)
            self._owners[watcher], self._caches_of[watcher] = (user, attributes), cache
            try:
                yield watcher, float(options.timeout_seconds or random.uniform(LEAST_SECONDS, 2 * LEAST_SECONDS))
            finally:
                end()
                self._watchers.remove(watcher)
                del self._owners[watcher], self._caches_of[watcher]
                if watcher.is_slow:
                    metrics.SLOW.inc()

    def last_bookmark(self, watcher: Watcher) -> None:
        """Send a bookmark to a watch that is about to end, if it takes them."""
        if watcher.allows_bookmarks:
            watcher.bookmark(self._caches_of[watcher].mark)

    async def run(self) -> NoReturn:
        """Review watches and send bookmarks, for ever."""
        number = 0
        while True:
            await asyncio.sleep(REVIEW_SECONDS)
            number += 1
            for user, attributes in set(self._owners.values()):
                await self._review(user, attributes)
            if number % BOOKMARK_REVIEWS == 0:
                self._watchers.bookmark(self._caches_of.__getitem__)

    async def _review(self, user: User, attributes: AccessAttributes) -> None:
        error: Forbidden | Unauthenticated | None = None
        try:
            if await self._logins.is_valid(user):
                await self._authorizer.require(attributes)
            else:
                error = Unauthenticated("the credentials are not valid any more")
        except Forbidden as forbidden:
            error = forbidden
        except Unavailable:
            return  # the watch goes on: what it shows is what it was allowed to
        if error is not None:
            for watcher in [each for each, owner in self._owners.items() if owner == (user, attributes)]:
                watcher.end(error)

    async def stop(self) -> None:
        """End all watches."""
        self._watchers.end_all()
