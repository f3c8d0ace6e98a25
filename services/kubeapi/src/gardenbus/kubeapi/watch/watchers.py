"""Watchers: each a queue of encoded lines between the cache and one client.

A client that does not read has its watch ended at a bound; it goes on from the last version that it has seen.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from gardenbus.common.api.document import Document, encode
from gardenbus.common.errors import GardenbusError
from gardenbus.kubeapi.domain.list_options import ListOptions
from gardenbus.kubeapi.domain.negotiation import METADATA, TABLE
from gardenbus.kubeapi.domain.resources import ApiResource
from gardenbus.kubeapi.domain.statuses import ResourceExpired, status_of
from gardenbus.kubeapi.domain.tables import Included, partial, table
from gardenbus.kubeapi.watch.cacher import CacheEvent, Cacher

MOST_LINES = 1_000
MOST_BYTES = 4 * 1024 * 1024


class WatchForm(NamedTuple):
    """The form of a watch's objects."""

    form: str = ""
    included: Included = "Metadata"


class Watcher:
    """One watch. `lines` hands over what has come; it ends when the watch has ended."""

    def __init__(
        self, resource: ApiResource, namespace: str, options: ListOptions, form: WatchForm, now: Callable[[], datetime]
    ) -> None:
        self.resource, self.namespace, self.options = resource, namespace, options
        self._form = form
        self._now = now
        self._queue: deque[bytes] = deque()
        self._bytes = 0
        self._ready = asyncio.Event()
        self._is_ended = False
        self._has_sent_columns = form.form != TABLE
        self._above = 0
        self.allows_bookmarks = options.bookmarks
        self.is_slow = False
        """It was ended because its client did not read."""

    def start(self, cache: Cacher) -> Callable[[], None]:
        """Begin: initial events, or what came after the version, then all that comes. Raises ResourceExpired."""
        options = self.options
        if options.sends_initial_events or not options.version:
            for each in cache.objects(self.resource.singular, self.namespace):
                self.receive(CacheEvent(None, each, each.version))
            if options.sends_initial_events:
                self.bookmark(cache.mark, is_initial_end=True)
        else:
            for event in cache.since(self.resource.singular, options.version):
                self.receive(event)
            self._above = options.version if options.version > cache.mark else 0
        return cache.subscribe(self.resource.singular, self._receive_live)

    def _receive_live(self, event: CacheEvent) -> None:
        self.receive(event)
        if len(self._queue) > MOST_LINES or self._bytes > MOST_BYTES:
            self._queue.clear()
            self.is_slow = True
            self.end(ResourceExpired("the client does not read what it watches"))

    def receive(self, event: CacheEvent) -> None:
        """Queue an event, if it concerns this watch."""
        key, options = event.key, self.options
        if (self.namespace and key.namespace != self.namespace) or (options.name and key.name != options.name):
            return
        if event.version <= self._above:
            return
        before = event.matches(options.selector, options.matches, is_old=True)
        after = event.matches(options.selector, options.matches, is_old=False)
        if not before and not after:
            return
        word = "MODIFIED" if before and after else "ADDED" if after else "DELETED"
        self._put(self._line(event, word))

    def bookmark(self, version: int, *, is_initial_end: bool = False) -> None:
        """Queue a bookmark: everything up to the version was sent."""
        metadata: Document = {"resourceVersion": str(version), "creationTimestamp": None}
        if is_initial_end:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        document: Document = {"kind": self.resource.kind, "apiVersion": self.resource.api_version, "metadata": metadata}
        if self._form.form == TABLE:
            document = self._table([], version)
        elif self._form.form == METADATA:
            document = partial(document)
        self._put(_encoded("BOOKMARK", encode(document)))

    def end(self, error: GardenbusError | None = None) -> None:
        """End the watch, with an ERROR event where there is a reason."""
        if error is not None and not self._is_ended:
            self._queue.append(_encoded("ERROR", encode(status_of(error))))
        self._is_ended = True
        self._ready.set()

    def expire(self) -> None:
        """End the watch: its client has to list again."""
        self.end(ResourceExpired("the resource version is too old: everything was read anew"))

    async def lines(self) -> Iterable[bytes]:
        """The queued lines, as soon as there is one; nothing when the watch has ended."""
        await self._ready.wait()
        found, self._bytes = [*self._queue], 0
        self._queue.clear()
        if not self._is_ended:
            self._ready.clear()
        return found

    def _put(self, line: bytes) -> None:
        if self._is_ended:
            return
        self._queue.append(line)
        self._bytes += len(line)
        self._ready.set()

    def _line(self, event: CacheEvent, word: str) -> bytes:
        is_old = word == "DELETED" and event.new is None
        shared = (self._form, word, is_old)
        if self._form.form == TABLE and not self._has_sent_columns:
            shared = (*shared, True)
        found = event.lines.get(shared)
        if found is None:
            found = event.lines[shared] = _encoded(word, self._object(event, is_old=is_old))
        self._has_sent_columns = True
        return found

    def _object(self, event: CacheEvent, *, is_old: bool) -> bytes:
        if self._form.form == TABLE:
            return encode(self._table([event.document(is_old=is_old)]))
        if self._form.form == METADATA:
            return encode(partial(event.document(is_old=is_old)))
        if is_old:
            document = event.document(is_old=True)
            return encode({"apiVersion": self.resource.api_version, "kind": self.resource.kind, **document})
        return event.body(is_old=False)

    def _table(self, documents: Sequence[Document], version: int | None = None) -> Document:
        return table(
            self.resource.singular,
            documents,
            self._now(),
            version=version,
            included=self._form.included,
            has_columns=not self._has_sent_columns,
        )


def _encoded(word: str, body: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (word.encode(), body)


class Watchers:
    """All watches that go on."""

    def __init__(self) -> None:
        self._running: set[Watcher] = set()

    def __len__(self) -> int:
        return len(self._running)

    def add(self, watcher: Watcher) -> None:
        """Count a watch."""
        self._running.add(watcher)

    def remove(self, watcher: Watcher) -> None:
        """Forget a watch."""
        self._running.discard(watcher)

    def expire(self, cache: Cacher, cache_of: Callable[[Watcher], Cacher]) -> None:
        """End the watches of a cache that was read anew."""
        for watcher in [each for each in self._running if cache_of(each) is cache]:
            watcher.expire()

    def bookmark(self, cache_of: Callable[[Watcher], Cacher]) -> None:
        """Send a bookmark to all that take them."""
        for watcher in self._running:
            if watcher.allows_bookmarks:
                watcher.bookmark(cache_of(watcher).mark)

    def end_all(self) -> None:
        """End all, as the service stops."""
        for watcher in self._running:
            watcher.end()
