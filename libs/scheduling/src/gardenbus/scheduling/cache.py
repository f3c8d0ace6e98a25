"""Cache of the landscape: the informer's objects and the store's usage, as far as decisions read them."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.garden.cloudprofiles import CloudProfile, NamespacedCloudProfile, RegionConfigMap
from gardenbus.common.api.garden.projects import Project
from gardenbus.common.api.garden.scheduling_profiles import SchedulingProfile, annotations_read
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.views import read_view
from gardenbus.common.errors import InvalidResource
from gardenbus.common.ports.store import Store, UnblockIndexes, Usage
from gardenbus.scheduling.plugin_replies import ClassReplies, PluginInput
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.seed_index import SeedIndex
from gardenbus.scheduling.snapshot import Landscape, Snapshot
from gardenbus.scheduling.usage_index import UsageIndex
from gardenbus.scheduling.user_filters import SeedFilter

T = TypeVar("T")

KINDS = ("seed", "cloudprofile", "namespacedcloudprofile", "configmap", "project")
"""The kinds that decisions read besides shoots; those whose changes the store counts as cluster events."""


class LandscapeInformer(Protocol):
    """The part of an informer that the cache needs."""

    @property
    def unblock_index(self) -> int:
        """Cluster events of objects that have been seen."""
        ...

    def objects(self, kind: str) -> Mapping[ObjectKey, StoredObject]:
        """The objects of a kind."""
        ...

    async def wait_for_unblock_index(self, unblock_index: int, timeout_seconds: float) -> bool:
        """Wait until so many cluster events have been seen."""
        ...


def _ignore(*_: object) -> None:
    return


class SchedulingCache:
    """Keeps a `Snapshot` current. `changed` is its informer callback, `record_usage` takes the usage of replies.

    The callbacks of `subscribe` are called after every change that decisions may depend on, `on_unreadable` with the
    key of an object that cannot be read and the reason. All `profiles` share the index; without a name a snapshot is
    for shoots of no profile.
    """

    def __init__(
        self,
        informer: LandscapeInformer,
        strategy: str,
        filters: Sequence[SeedFilter] = (),
        on_unreadable: Callable[[ObjectKey, str], None] = _ignore,
        profiles: Sequence[SchedulingProfile] = (),
    ) -> None:
        self._on_change: list[Callable[[], None]] = []
        self._profiles = {each.scheduler_name: each for each in profiles}
        self._landscapes: dict[str, Landscape] = {}
        self._replies: dict[str, dict[PluginInput, ClassReplies]] = {name: {} for name in self._profiles}
        self._annotations = annotations_read(profiles)
        self._now: datetime | None = None
        self._informer = informer
        self._strategy = strategy
        self._filters = tuple(filters)
        self._on_unreadable = on_unreadable
        self._seeds: dict[str, SeedCandidate] = {}
        self._views: dict[ObjectKey, object] = {}
        self._landscape = Landscape(strategy=strategy, filters=filters)
        self._is_outdated = True
        self._index: SeedIndex | None = None
        self._usage: dict[str, int] = {}
        self._requested: dict[str, Mapping[str, int]] = {}
        self._usage_unblock_index = 0
        self._working_usage = UsageIndex()
        self._changed_usage: set[str] = set()
        self.usage_version = 0

    @property
    def filters(self) -> Sequence[SeedFilter]:
        """Users' own filters."""
        return self._filters

    def replies_to(self, profile: str) -> dict[PluginInput, ClassReplies]:
        """The replies of a profile's plug-ins, for whoever requests them."""
        return self._replies[profile]

    def subscribe(self, on_change: Callable[[], None]) -> None:
        """Have a callback called after every change that decisions may depend on."""
        self._on_change.append(on_change)

    @property
    def seen(self) -> UnblockIndexes:
        """Cluster events that are in the snapshot; read it before deciding, never after."""
        return UnblockIndexes(self._informer.unblock_index, self._usage_unblock_index)

    @property
    def usage(self) -> UsageIndex:
        """A copy of the usage that was read last."""
        return UsageIndex(self._usage, self._requested)

    def snapshot(self, profile: str = "") -> Snapshot:
        """The landscape of this moment with a copy of the usage, for assignments to be counted in."""
        return Snapshot(self._current(profile), self.usage)

    @property
    def landscapes(self) -> Mapping[str, Landscape]:
        """The landscape of this moment for the shoots of each profile, by the name of its scheduler."""
        return {name: self._current(name) for name in self._profiles}

    def working_snapshot(self, profile: str = "") -> Snapshot:
        """The same with usage that is kept from one working snapshot to the next: it costs little, but is shared.

        The next one takes back all assignments that were assumed in this one; by then the store has reported those that
        were made. Use it up before anything is awaited.
        """
        landscape = self._current(profile)
        self._working_usage.reconcile(self._usage, self._changed_usage, self._requested)
        self._changed_usage.clear()
        return Snapshot(landscape, self._working_usage)

    def generation_of(self, seed: str) -> int | None:
        """The scheduling generation of a seed; -1 when there is no such seed."""
        candidate = self._seeds.get(seed)
        return candidate.scheduling_generation if candidate is not None else -1

    def expire_annotations(self, now: datetime) -> None:
        """Take the annotations of Seeds that are valid until an earlier instant for missing, from now on."""
        if not self._annotations:
            return
        self._now = now
        for seed in tuple(self._seeds.values()):
            self._replace(seed.name, seed)

    def changed(self, key: ObjectKey, _old: StoredObject | None, new: StoredObject | None) -> None:
        """Apply a change of an object; one that cannot change a decision keeps what was worked out."""
        if key.kind == "seed":
            self._seed_changed(key.name, new)
        else:
            self._view_changed(key, new)

    def record_usage(self, usage: Usage) -> None:
        """Apply usage that came with a reply, unless it is older than the present, or all of it must be read anew."""
        if not usage.follows(self.usage_version):
            return
        self._usage.update(usage.seeds)
        self._changed_usage.update(usage.seeds)
        self._requested.update(usage.requested)
        self._changed_usage.update(usage.requested)
        self.usage_version = usage.version
        self._usage_unblock_index = max(self._usage_unblock_index, usage.unblock_indexes.usage)

    def reset_usage(self, usage: Usage) -> None:
        """Start over with all usage there is (the store came back older than it was)."""
        self._changed_usage.update(self._usage, usage.seeds, self._requested, usage.requested)
        self._usage = dict(usage.seeds)
        self._requested = dict(usage.requested)
        self.usage_version = usage.version
        self._usage_unblock_index = usage.unblock_indexes.usage

    async def refresh_usage(self, store: Store) -> UnblockIndexes:
        """Read the usage that has changed; all of it when the store may have gone back to an older state.

        Returns the cluster events of which it knew. Raises Unavailable.
        """
        version = self.usage_version
        usage = await store.usage(version)
        if usage.follows(version):
            self.record_usage(usage)
        else:
            usage = await store.usage(0)
            self.reset_usage(usage)
        return usage.unblock_indexes

    async def wait_for_objects(self, unblock_index: int, timeout_seconds: float) -> bool:
        """Wait until the cluster events of objects up to `unblock_index` have been seen."""
        return await self._informer.wait_for_unblock_index(unblock_index, timeout_seconds)

    def _seed_changed(self, name: str, new: StoredObject | None) -> None:
        self._replace(name, SeedCandidate.stored(name, new) if new is not None else None)

    def _replace(self, name: str, new: SeedCandidate | None) -> None:
        old = self._seeds.pop(name, None)
        if new is not None:
            self._seeds[name] = new if self._now is None else new.valid_at(self._now, self._annotations)
        if self._decides_alike(old, self._seeds.get(name)) and not (self._filters and old is not new):
            return
        if self._index is not None and new is not None:
            self._index.put(self._seeds[name])
        elif self._index is not None:
            self._index.remove(name)
        self._outdate()

    def _view_changed(self, key: ObjectKey, new: StoredObject | None) -> None:
        old = self._views.pop(key, None)
        view = self._read(key, new) if new is not None else None
        if view is not None:
            self._views[key] = view
        if old != view:
            if self._index is not None:
                self._index.touch()
            self._outdate()

    def _outdate(self) -> None:
        self._is_outdated = True
        for on_change in self._on_change:
            on_change()

    def _current(self, profile: str) -> Landscape:
        if self._is_outdated:
            self._landscape = self._built()
            self._landscapes.clear()
            self._is_outdated = False
        if profile not in self._profiles:
            return self._landscape
        if profile not in self._landscapes:
            self._landscapes[profile] = self._landscape.with_profile(self._profiles[profile], self._replies[profile])
        return self._landscapes[profile]

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

    def _decides_alike(self, one: SeedCandidate | None, other: SeedCandidate | None) -> bool:
        if one is None or other is None:
            return one is other
        return (one.scheduling_generation, one.capacity, one.unreadable, one.allocatable) == (
            other.scheduling_generation,
            other.capacity,
            other.unreadable,
            other.allocatable,
        ) and not any(_annotation(one, name) != _annotation(other, name) for name in self._annotations)

    def _of(self, kind: type[T]) -> list[T]:
        return [view for view in self._views.values() if isinstance(view, kind)]

    def _read(self, key: ObjectKey, stored: StoredObject) -> object | None:
        try:
            view = read_view(stored.encoded(), _VIEWS[key.kind])
        except InvalidResource as error:
            self._on_unreadable(key, error.message)
            return None
        if isinstance(view, RegionConfigMap) and not view.is_region_config:
            return None
        return view


_VIEWS: Mapping[str, type[CloudProfile | NamespacedCloudProfile | RegionConfigMap | Project]] = {
    "cloudprofile": CloudProfile,
    "namespacedcloudprofile": NamespacedCloudProfile,
    "configmap": RegionConfigMap,
    "project": Project,
}


def _annotation(seed: SeedCandidate, name: str) -> str | None:
    return seed.seed.metadata.annotations.get(name)
