"""The landscape as this process knows it now: informers' objects, and usage as the store told it last."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

import structlog

from gardenbus.common.errors import InvalidResource
from gardenbus.common.ports.store import Gains, Usage
from gardenbus.common.resources.cloudprofiles import CloudProfile, NamespacedCloudProfile, RegionConfigMap
from gardenbus.common.resources.document import StoredObject
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.projects import Project
from gardenbus.common.resources.views import read_view
from gardenbus.scheduling.landscape import Landscape, SeedCandidate, Snapshot
from gardenbus.scheduling.seed_index import SeedIndex
from gardenbus.scheduling.tally import Tally
from gardenbus.scheduling.user_filters import SeedFilter

_log = structlog.stdlib.get_logger()
T = TypeVar("T")

KINDS = ("seed", "cloudprofile", "namespacedcloudprofile", "configmap", "project")
"""What decisions read besides shoots; the same kinds whose changes the store counts as gains."""


class ObjectsSeen(Protocol):
    """What is needed of an informer."""

    @property
    def gain(self) -> int:
        """The gains of objects that have been seen."""
        ...

    def objects(self, kind: str) -> Mapping[ObjectKey, StoredObject]:
        """The objects of a kind."""
        ...

    async def wait_for_gain(self, gain: int, timeout_seconds: float) -> bool:
        """Wait until a gain has been seen."""
        ...


class CurrentLandscape:
    """Keeps a `Snapshot` current. `changed` is its informer callback, `usage_told` takes usage out of replies.

    What decisions were based on is told by `seen`; take it before deciding, never after.
    """

    def __init__(self, informer: ObjectsSeen, strategy: str, filters: Sequence[SeedFilter] = ()) -> None:
        self._informer = informer
        self._strategy = strategy
        self._filters = tuple(filters)
        self._seeds: dict[str, SeedCandidate] = {}
        self._views: dict[ObjectKey, object] = {}
        self._landscape = Landscape(strategy=strategy, filters=filters)
        self._is_outdated = True
        self._news = asyncio.Event()
        self._index: SeedIndex | None = None
        self._usage: dict[str, int] = {}
        self._usage_gain = 0
        self._tally = Tally()
        self._told: set[str] = set()
        self.usage_version = 0

    @property
    def filters(self) -> Sequence[SeedFilter]:
        """The users' own filters."""
        return self._filters

    @property
    def seen(self) -> Gains:
        """All gains up to these are in the snapshot."""
        return Gains(self._informer.gain, self._usage_gain)

    def snapshot(self) -> Snapshot:
        """The landscape of this moment with a copy of the usage, for placements to be counted in."""
        return Snapshot(self._current(), dict(self._usage))

    def draft(self) -> Snapshot:
        """The same with usage that is kept up to date from one draft to the next: it costs little, but is shared.

        The next draft takes all placements back that were counted in this one; by then the store has told of those
        that were made. Use it up before anything is waited for.
        """
        landscape = self._current()
        self._tally.settle(self._usage, self._told)
        self._told.clear()
        return Snapshot(landscape, self._tally)

    def changed(self, key: ObjectKey, _old: StoredObject | None, new: StoredObject | None) -> None:
        """Take a change of an object; whatever cannot change a decision keeps what was worked out."""
        if key.kind == "seed":
            self._seed_changed(key.name, new)
        else:
            self._view_changed(key, new)

    def usage_told(self, usage: Usage) -> None:
        """Take usage that came with a reply; older than what is known, it is dropped."""
        if usage.version < self.usage_version:
            return
        self._usage.update(usage.seeds)
        self._told.update(usage.seeds)
        self.usage_version = usage.version
        self._usage_gain = max(self._usage_gain, usage.gains.usage)

    def usage_lost(self, usage: Usage) -> None:
        """Start over with all usage there is (the store came back older than it was)."""
        self._told.update(self._usage, usage.seeds)
        self._usage = dict(usage.seeds)
        self.usage_version = usage.version
        self._usage_gain = usage.gains.usage

    async def wait_for_objects(self, gain: int, timeout_seconds: float) -> bool:
        """Wait until the gains of objects up to `gain` have been seen."""
        return await self._informer.wait_for_gain(gain, timeout_seconds)

    async def wait_for_seed(self, name: str, gate: int | None, timeout_seconds: float) -> None:
        """Wait until a seed is no longer at a gate, or the time is over."""
        try:
            async with asyncio.timeout(timeout_seconds):
                while (seed := self._seeds.get(name)) is not None and seed.gate == gate:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            return

    def _seed_changed(self, name: str, new: StoredObject | None) -> None:
        known = self._seeds.pop(name, None)
        if new is not None:
            self._seeds[name] = SeedCandidate.stored(name, new)
        if _decides_alike(known, self._seeds.get(name)) and not self._filters:
            return
        if self._index is not None and new is not None:
            self._index.put(self._seeds[name])
        elif self._index is not None:
            self._index.remove(name)
        self._outdate()

    def _view_changed(self, key: ObjectKey, new: StoredObject | None) -> None:
        known = self._views.pop(key, None)
        view = _view_of(key, new) if new is not None else None
        if view is not None:
            self._views[key] = view
        if known != view:
            if self._index is not None:
                self._index.touch()
            self._outdate()

    def _outdate(self) -> None:
        self._is_outdated = True
        self._news.set()

    def _current(self) -> Landscape:
        if self._is_outdated:
            self._landscape = self._built()
            self._is_outdated = False
        return self._landscape

    def _built(self) -> Landscape:
        if self._index is None or self._index.is_worn:
            self._index = SeedIndex(sorted(self._seeds.values(), key=lambda seed: seed.name))
        return Landscape(
            index=self._index,
            seeds=self._seeds.values(),
            cloudprofiles=self._of(CloudProfile),
            namespaced_cloudprofiles=self._of(NamespacedCloudProfile),
            region_configmaps=self._of(RegionConfigMap),
            projects=self._of(Project),
            strategy=self._strategy,
            filters=self._filters,
        )

    def _of(self, kind: type[T]) -> list[T]:
        return [view for view in self._views.values() if isinstance(view, kind)]


_VIEWS: Mapping[str, type[CloudProfile | NamespacedCloudProfile | RegionConfigMap | Project]] = {
    "cloudprofile": CloudProfile,
    "namespacedcloudprofile": NamespacedCloudProfile,
    "configmap": RegionConfigMap,
    "project": Project,
}


def _view_of(key: ObjectKey, stored: StoredObject) -> object | None:
    try:
        view = read_view(stored.encoded(), _VIEWS[key.kind])
    except InvalidResource as error:
        _log.warning("object.unreadable", object=str(key), reason=error.message)
        return None
    if isinstance(view, RegionConfigMap) and not view.is_region_config:
        return None
    return view


def _decides_alike(one: SeedCandidate | None, other: SeedCandidate | None) -> bool:
    if one is None or other is None:
        return one is other
    return (one.gate, one.capacity, one.unreadable) == (other.gate, other.capacity, other.unreadable)
