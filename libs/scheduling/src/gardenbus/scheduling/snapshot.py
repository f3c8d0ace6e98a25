"""The objects that decisions are made on, as they were at one moment, with the shoots per seed."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy

import msgspec

from gardenbus.common.api.garden.cloudprofiles import (
    CloudProfile,
    CloudProfileSpec,
    NamespacedCloudProfile,
    RegionConfigMap,
)
from gardenbus.common.api.garden.projects import Project
from gardenbus.common.api.garden.scheduling_profiles import AddedAffinity, SchedulingProfile
from gardenbus.common.api.garden.scheduling_requirements import Requests
from gardenbus.common.api.garden.shoot_groups import SEED_KEY, domain_of
from gardenbus.common.api.garden.strategies import SAME_REGION
from gardenbus.scheduling.equivalence_classes import Constraints
from gardenbus.scheduling.group_index import GroupIndex
from gardenbus.scheduling.plugin_replies import NO_REPLIES, ClassReplies, RepliesByInput, input_to_plugins
from gardenbus.scheduling.result_cache import ResultCaches
from gardenbus.scheduling.score_table import NO_SCORES, ScoreTable
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.seed_index import SeedIndex
from gardenbus.scheduling.usage_index import UsageIndex
from gardenbus.scheduling.user_filters import SeedFilter


class Landscape:
    """Seeds by name, profiles, region ConfigMaps and projects; never changed once it is made.

    The profile's `strategy`, `filters` and scores are part of it, because the results of `caches` depend on them.
    `index` may be handed on from one landscape to the next, if it holds the same seeds as `seeds` by then.
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
        self.scores: ScoreTable = NO_SCORES
        self.added_affinity: tuple[AddedAffinity, ...] = ()
        self.reads_purpose = False
        self.replies: RepliesByInput | None = None
        self.seeds = tuple(sorted(seeds, key=lambda seed: seed.name))
        self.seeds_by_name = {seed.name: seed for seed in self.seeds}
        self._all_seeds: Mapping[str, SeedCandidate] = self.seeds_by_name
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
        self.caches: ResultCaches = {}
        self._owner = object()
        self._index = index
        if index is not None:
            index.owner = self._owner

    @property
    def index(self) -> SeedIndex:
        """The seeds as bits; an index that was handed on to a later landscape is replaced by a new one."""
        if self._index is None or self._index.owner is not self._owner:
            self._index = SeedIndex(self.seeds)
            self._index.owner = self._owner
        return self._index

    def without(self, seeds: Collection[str]) -> "Landscape":
        """The same landscape without some seeds."""
        return self._with_seeds(tuple(seed for seed in self.seeds if seed.name not in seeds))

    def with_seed(self, seed: SeedCandidate) -> "Landscape":
        """The same landscape with one more seed, or with another of its name."""
        others = (each for each in self.seeds if each.name != seed.name)
        return self._with_seeds(tuple(sorted((*others, seed), key=lambda each: each.name)))

    def with_profile(self, profile: SchedulingProfile, replies: RepliesByInput | None = None) -> "Landscape":
        """The same landscape for the shoots of a profile; both share the index.

        `replies` are those of its plug-ins, which come and go while the landscape stays.
        """
        self._index = self.index
        same = copy(self)
        same.strategy = profile.strategy
        same.filters = tuple(each for each in self.filters if profile.runs_filter(each.name))
        same.scores = ScoreTable(profile.scores) if profile.scores else NO_SCORES
        same.replies = replies if profile.plugins else None
        same.added_affinity, same.reads_purpose = profile.added_affinity, profile.reads_purpose
        same.caches = {}
        return same

    def _with_seeds(self, seeds: tuple[SeedCandidate, ...]) -> "Landscape":
        other = copy(self)
        other.seeds = seeds
        other.seeds_by_name = {seed.name: seed for seed in seeds}
        other._all_seeds = {**self._all_seeds, **other.seeds_by_name}  # noqa: SLF001  another of this class
        other.caches = {}
        other._owner = object()  # noqa: SLF001  another of this class
        return other

    def replies_of(self, constraints: Constraints) -> ClassReplies:
        """The replies of plug-ins about a class; the same value until another one comes."""
        if self.replies is None:
            return NO_REPLIES
        return self.replies.get(input_to_plugins(constraints), NO_REPLIES)

    def domain(self, seed: str, key: str) -> str | None:
        """The domain of a seed, also of one that was left out: the shoots there still count."""
        if key == SEED_KEY:
            return seed
        found = self._all_seeds.get(seed)
        return domain_of(found.seed, key) if found is not None and not found.unreadable else None

    def profile(self, kind: str, namespace: str, name: str) -> CloudProfileSpec | None:
        """The profile that a shoot of a namespace refers to, or None."""
        if kind == "NamespacedCloudProfile":
            return self._namespaced_profiles.get((namespace, name))
        return self._profiles.get(name) if kind == "CloudProfile" else None

    def project_of(self, namespace: str) -> Project | None:
        """The Project that owns a namespace; the first by name if several claim it."""
        return self._projects.get(namespace)

    def region_configmaps_of(self, profile: str) -> Sequence[RegionConfigMap]:
        """The region ConfigMaps for a profile, by name; only the first takes effect."""
        return [configmap for configmap in self._region_configmaps if profile in configmap.profiles]

    def duplicate_region_configmaps(self) -> Mapping[str, str]:
        """Region ConfigMaps without effect on some profile: name → message for people."""
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
    """A landscape, the shoots per seed, and the groups that the shoots to be decided on have rules about.

    `usage` and `groups` are the caller's to count its own assignments in.
    """

    landscape: Landscape
    usage: UsageIndex = msgspec.field(default_factory=UsageIndex)
    groups: GroupIndex = msgspec.field(default_factory=GroupIndex)

    def assume(self, seed: str, requests: Requests = ()) -> None:
        """Count one more shoot on a seed, with what it requests there."""
        self.usage.assume(seed, requests)
