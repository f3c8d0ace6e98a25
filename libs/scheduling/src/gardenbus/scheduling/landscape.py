"""The objects that decisions are made on, as they stood at one moment, and the usage that goes with them."""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
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
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.projects import Project
from gardenbus.common.resources.seeds import Seed, shoot_capacity
from gardenbus.scheduling.user_filters import SeedFilter

SAME_REGION = "SameRegion"
MINIMAL_DISTANCE = "MinimalDistance"
STRATEGIES = (SAME_REGION, MINIMAL_DISTANCE)


class SeedCandidate(msgspec.Struct, frozen=True, eq=False):
    """A seed with what the rules need at hand. `capacity` None: no limit; `gate` None: nobody numbers its changes.

    A manifest that cannot be read is a candidate too, with `unreadable` saying why: it is refused by the first rule.
    """

    name: str
    seed: Seed
    document: Document
    capacity: int | None = None
    gate: int | None = None
    zones: frozenset[str] = frozenset()
    unreadable: str = ""

    @classmethod
    def of(cls, document: Document, gate: int | None = None) -> "SeedCandidate":
        """Read a Seed; never raises."""
        try:
            seed = Seed.from_document(document)
            capacity = shoot_capacity(document)
        except InvalidResource as error:
            return cls(_name_of(document), Seed(), document, gate=gate, unreadable=error.message)
        except ValueError as error:
            detail = f"status.allocatable.shoots: {error}"
            return cls(_name_of(document), Seed(), document, gate=gate, unreadable=detail)
        return cls(seed.name, seed, document, capacity, gate, frozenset(seed.spec.provider.zones))


class Landscape:
    """Seeds by name, profiles, region ConfigMaps and projects; never changed once it is made.

    `strategy` and `filters` are part of it, because `memory` keeps what was worked out on it.
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
    """A landscape and the shoots per seed. `usage` is the caller's to count its own placements in."""

    landscape: Landscape
    usage: dict[str, int] = msgspec.field(default_factory=dict[str, int])

    def place(self, seed: str) -> None:
        """Count one more shoot on a seed."""
        self.usage[seed] = self.usage.get(seed, 0) + 1


def _name_of(document: Document) -> str:
    metadata: Any = document.get("metadata")
    return str(metadata.get("name") or "") if isinstance(metadata, dict) else ""  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
