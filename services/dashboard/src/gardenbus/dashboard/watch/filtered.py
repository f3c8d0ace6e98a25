"""The part of the cache that somebody may read: a cache of its own, with the rows of the whole one."""

from gardenbus.common.api.document import Document
from gardenbus.common.api.identity.readable import Readable
from gardenbus.common.api.keys import ObjectKey
from gardenbus.dashboard.watch.landscape import DashboardCache


class FilteredCache(DashboardCache):
    """Follows the whole cache until `end`. Heartbeats are Leases, which a role in a Project does not let one read."""

    def __init__(self, whole: DashboardCache, readable: Readable) -> None:
        super().__init__()
        self._whole = whole
        self._readable = readable
        for key in [*whole.all_keys(), *whole.waiting.keys()]:
            self._copy(key)
        for event in whole.events.values():
            self._add(event)
        whole.subscribe(self._copy, self._add)

    @property
    def synced(self) -> bool:
        """True once the whole cache is."""
        return self._whole.synced

    def end(self) -> None:
        """Follow no longer."""
        self._whole.unsubscribe(self._copy, self._add)

    def _copy(self, key: ObjectKey) -> None:
        if not self._readable.allows(*key):
            return
        row = self._whole.row(key)
        if row is None:
            self.remove(key)
        else:
            self.put_row(key, row, history=self._whole.histories.get(key, ()))
        if key.kind == "shoot":
            self.waiting.put(key, self._whole.waiting.entry(key))

    def _add(self, event: Document) -> None:
        if self._readable.allows("event", event["namespace"], ""):
            self.add_event_row(event)
