"""The objects that decisions are made on, as they stood at one moment, and the usage that goes with them."""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any

import msgspec

from gardenbus.common.errors import InvalidResource
from gardenbus.common.resources.cloudprofiles import (
    CloudProfile,
    CloudProfileSpec,
    NamespacedCloudProfile,
    RegionConfigMap,
)
from gardenbus.common.resources.document import Document, StoredObject
from gardenbus.common.resources.projects import Project
from gardenbus.common.resources.seeds import Seed, shoot_capacity
from gardenbus.scheduling.seed_index import SeedIndex
from gardenbus.scheduling.tally import Tally
from gardenbus.scheduling.user_filters import SeedFilter

SAME_REGION = "SameRegion"
MINIMAL_DISTANCE = "MinimalDistance"
STRATEGIES = (SAME_REGION, MINIMAL_DISTANCE)


class SeedCandidate(msgspec.Struct, frozen=True, eq=False):
    """A seed with what the rules need at hand. `capacity` None: no limit; `gate` None: nobody numbers its changes.

    A manifest that cannot be read is a candidate too, with `unreadable` saying why: it is refused by the first rule.
    `read` gives the whole manifest: few ask for it, and thousands of seeds' would fill the memory.
    """

    name: str
    seed: Seed
    read: Callable[[], Document]
    capacity: int | None = None
    gate: int | None = None
    zones: frozenset[str] = frozenset()
    unreadable: str = ""

    @classmethod
    def of(cls, document: Document, gate: int | None = None) -> "SeedCandidate":
        """Read a Seed; never raises."""
        return cls._of(_name_of(document), document, lambda: document, gate)

    @classmethod
    def stored(cls, name: str, stored: StoredObject) -> "SeedCandidate":
        """Read a stored Seed; never raises."""
        return cls._of(name, stored.encoded(), stored.document, stored.gate)

    @classmethod
    def _of(
        cls, name: str, manifest: Document | bytes, read: Callable[[], Document], gate: int | None
    ) -> "SeedCandidate":
        try:
            seed = Seed.from_document(manifest)
            capacity = shoot_capacity({"status": {"allocatable": seed.status.allocatable}})
        except InvalidResource as error:
            return cls(name, Seed(), read, gate=gate, unreadable=error.message)
        except ValueError as error:
            return cls(name, Seed(), read, gate=gate, unreadable=f"status.allocatable.shoots: {error}")
        return cls(name, seed, read, capacity, gate, frozenset(seed.spec.provider.zones))

    @property
    def document(self) -> Document:
        """The whole manifest."""
        return self.read()


class Landscape:
    """Seeds by name, profiles, region ConfigMaps and projects; never changed once it is made.

    `strategy` and `filters` are part of it, because `memory` keeps what was worked out on it. `index` may be handed on
    from one landscape to the next, if it holds the same seeds as `seeds` by then.
    """

    def __init__(  # noqa: PLR0913  one list a kind, all by keyword
        self,
        *,
        seeds: Iterable[SeedCandidate] = (),
        cloudprofiles: Iterable[CloudProfile] = (),
        namespaced_cloudprofiles: Iterable[NamespacedCloudProfile] = (),
        region_configmaps: Iterable[RegionConfigMap] = (),
        projects: Iterable[Project] = (),
        strategy: str = SAME_REGION,
        filters: Sequence[SeedFilter] = (),
        index: SeedIndex | None = None,
    ) -> None:
        self.strategy = strategy
        self.filters = tuple(sorted(filters, key=lambda each: each.name))
        self.seeds = tuple(sorted(seeds, key=lambda seed: seed.name))
        self.seeds_by_name = {seed.name: seed for seed in self.seeds}
        self._profiles = {profile.metadata.name: profile.spec for profile in cloudprofiles}
        self._namespaced_profiles = {
            (profile.metadata.namespace, profile.metadata.name): profile.status.cloud_profile_spec
            for profile in namespaced_cloudprofiles
        }
        self._region_configmaps = sorted(
            (configmap for configmap in region_configmaps if configmap.is_region_config),
            key=lambda configmap: configmap.metadata.name,
        )
        self._projects: dict[str, Project] = {}
        for project in sorted(projects, key=lambda project: project.metadata.name):
            self._projects.setdefault(project.namespace, project)
        self.memory: dict[Hashable, Any] = {}
        self._index = index
        if index is not None:
            index.owner = self

    @property
    def index(self) -> SeedIndex:
        """The seeds as bits; one that was handed on to a later landscape is replaced by one of its own."""
        if self._index is None or self._index.owner is not self:
            self._index = SeedIndex(self.seeds)
            self._index.owner = self
        return self._index

    def without(self, seeds: Collection[str]) -> "Landscape":
        """The same landscape as it were if some seeds were not there."""
        rest = copy(self)
        rest.seeds = tuple(seed for seed in self.seeds if seed.name not in seeds)
        rest.seeds_by_name = {seed.name: seed for seed in rest.seeds}
        rest.memory = {}
        return rest

    def with_seed(self, seed: SeedCandidate) -> "Landscape":
        """The same landscape as it were with one more seed, or with another of its name."""
        more = copy(self)
        more.seeds = tuple(sorted((*self.without({seed.name}).seeds, seed), key=lambda each: each.name))
        more.seeds_by_name = {each.name: each for each in more.seeds}
        more.memory = {}
        return more

    def profile(self, kind: str, namespace: str, name: str) -> CloudProfileSpec | None:
        """The profile that a shoot of a namespace names, or None."""
        if kind == "NamespacedCloudProfile":
            return self._namespaced_profiles.get((namespace, name))
        return self._profiles.get(name) if kind == "CloudProfile" else None

    def project_of(self, namespace: str) -> Project | None:
        """The Project that owns a namespace; the first by name if several say so."""
        return self._projects.get(namespace)

    def region_configmaps_of(self, profile: str) -> Sequence[RegionConfigMap]:
        """The region ConfigMaps for a profile, by name; the first one counts."""
        return [configmap for configmap in self._region_configmaps if profile in configmap.profiles]

    def duplicate_region_configmaps(self) -> Mapping[str, str]:
        """Region ConfigMaps without effect on some profile: their name → what to tell people."""
        first: dict[str, str] = {}
        found: dict[str, str] = {}
        for configmap in self._region_configmaps:
            name = configmap.metadata.name
            for profile in sorted(configmap.profiles):
                counts = first.setdefault(profile, name)
                if counts != name and name not in found:
                    found[name] = f"CloudProfile {profile!r} has its distances from ConfigMap {counts!r}: first by name"
        return found


class Snapshot(msgspec.Struct, frozen=True, eq=False):
    """A landscape and the shoots per seed. `usage` is the caller's to count its own placements in.

    Decisions on a `Tally` keep the seeds in order and cost little however many there are; on any other mapping they
    look at every seed that fits.
    """

    landscape: Landscape
    usage: dict[str, int] = msgspec.field(default_factory=dict[str, int])

    def place(self, seed: str) -> None:
        """Count one more shoot on a seed."""
        if isinstance(self.usage, Tally):
            self.usage.place(seed)
        else:
            self.usage[seed] = self.usage.get(seed, 0) + 1


def _name_of(document: Document) -> str:
    metadata: Any = document.get("metadata")
    return str(metadata.get("name") or "") if isinstance(metadata, dict) else ""  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
