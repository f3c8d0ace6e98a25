"""Scheduling profiles as values: the name of a scheduler, its strategy, and the weighted scores that choose a seed.

`common.api.configuration.scheduling_profiles` reads them; the formulas are in `scheduling.scores`.
"""

from collections.abc import Iterable
from typing import Literal

import msgspec

from gardenbus.common.api.garden.shoot_groups import SHOOT_AFFINITY, SHOOT_ANTI_AFFINITY, TOPOLOGY_SPREAD
from gardenbus.common.api.garden.shoots import DEFAULT_SCHEDULER
from gardenbus.common.api.garden.strategies import SAME_REGION, WEIGHTED
from gardenbus.common.api.selectors import LabelSelector

ALL = "*"
"""Name that stands for all plug-ins of an extension point in a list of disabled ones."""

SHOOTS = "shoots"
"""The resource that every shoot requests one of."""

SEED_AFFINITY_FILTER = "seed-affinity"
"""Filter of the labels that a shoot requires of its seed, and those that SeedAffinity's addedAffinity requires."""

PLUGIN_FILTER = "plugin"
"""Filter of the seeds that users' plug-ins reject."""

BUILT_IN_FILTERS = (
    "cloudprofile",
    "project",
    "usable",
    "cloudprofile-selector",
    "shoot-selector",
    "provider",
    "zonal-control-plane",
    "zones",
    "access-restrictions",
    "dns-domain",
    "emergency-stop",
    "networks",
    "taints",
    SEED_AFFINITY_FILTER,
    SHOOT_AFFINITY,
    SHOOT_ANTI_AFFINITY,
    TOPOLOGY_SPREAD,
    PLUGIN_FILTER,
    "capacity",
    "strategy",
)
"""Names of all filters that are not users' own: promises to tenants, which no profile can disable."""

ScoringType = Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]


class WeightedResource(msgspec.Struct, frozen=True):
    """A resource of `status.allocatable`, and its weight in a mean."""

    name: str
    weight: int = 1


class ShapePoint(msgspec.Struct, frozen=True):
    """A point of a function of utilization (0 to 100): its score (0 to 10)."""

    utilization: int
    score: int


class ResourcesFit(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of SeedResourcesFit. `shape` belongs to RequestedToCapacityRatio alone."""

    type: ScoringType = "LeastAllocated"
    resources: tuple[WeightedResource, ...] = tuple(map(WeightedResource, (SHOOTS, "cpu", "memory")))
    shape: tuple[ShapePoint, ...] = ()


class BalancedAllocation(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of SeedResourcesBalancedAllocation."""

    resources: tuple[WeightedResource, ...] = tuple(map(WeightedResource, (SHOOTS, "cpu", "memory")))


class RegionDistance(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of MinimalDistance. Without `farthest` it is the distance of the farthest region that has a Seed."""

    farthest: int | None = None


class PreferredSeeds(msgspec.Struct, frozen=True):
    """Seeds that are preferred, with a weight of 1 to 100."""

    weight: int
    preference: LabelSelector


class AddedAffinity(msgspec.Struct, frozen=True, kw_only=True):
    """An operator's affinity for the shoots of some purposes, of all without any. One `required` term must match."""

    purposes: tuple[str, ...] = ()
    required: tuple[LabelSelector, ...] = ()
    preferred: tuple[PreferredSeeds, ...] = ()

    def concerns(self, purpose: str) -> bool:
        """True for shoots of a purpose."""
        return not self.purposes or purpose in self.purposes


class SeedAffinity(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of SeedAffinity."""

    added: tuple[AddedAffinity, ...] = ()


class ZoneFit(msgspec.Struct, frozen=True, kw_only=True):
    """SeedZoneFit has no arguments."""


class AnnotationScore(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of SeedAnnotation; `least` and `most` are thousandths."""

    annotation: str
    least: int
    most: int
    reverse: bool = False
    missing: int = 0


class TopologySpread(msgspec.Struct, frozen=True, kw_only=True):
    """ShootTopologySpread has no arguments: shoots state their constraints."""


class ShootAffinity(msgspec.Struct, frozen=True, kw_only=True):
    """InterShootAffinity has no arguments: shoots state their terms."""


PluginPoint = Literal["Filter", "Score", "Permit", "PostBind"]
"""Extension points of users' plug-ins: about a class of shoots, about a shoot and its seed, and after its bind."""

ABOUT_CLASSES: frozenset[PluginPoint] = frozenset({"Filter", "Score"})
"""The points at which a plug-in replies about classes, ahead of decisions."""

OnError = Literal["Ignore", "Fail"]


class RemotePlugin(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of Remote/<name>: a plug-in that responds on `Subjects.plugin`.

    A class of shoots waits for it for `deadline_seconds`. Then `Ignore` goes on as if it rejected no seed and gave
    each 0 points, and `Fail` leaves the shoots of the class unschedulable. Replies count for `valid_for_seconds`
    unless they state another time.
    """

    points: tuple[PluginPoint, ...] = ("Filter", "Score")
    """PostBind is for installed ones: programs of their own follow `garden.binding.>`."""

    deadline_seconds: float = 0.05
    on_error: OnError = "Ignore"
    valid_for_seconds: float = 300.0


class InstalledPlugin(RemotePlugin, frozen=True, kw_only=True):
    """Arguments of Installed/<name>, which are those of Remote: a plug-in in the process of the scheduler."""


ScoreArgs = (
    ResourcesFit
    | BalancedAllocation
    | RegionDistance
    | SeedAffinity
    | ZoneFit
    | AnnotationScore
    | RemotePlugin
    | TopologySpread
    | ShootAffinity
)


class WeightedScore(msgspec.Struct, frozen=True):
    """A score of a profile. `name` is `<plug-in>` or `<plug-in>/<instance>`."""

    name: str
    weight: int
    args: ScoreArgs

    @property
    def instance(self) -> str:
        """The name of the instance; "" without one."""
        return self.name.partition("/")[2]

    @property
    def reads_usage(self) -> bool:
        """True where the score depends on what is used on the seed."""
        return isinstance(self.args, ResourcesFit | BalancedAllocation)


class SchedulingProfile(msgspec.Struct, frozen=True, kw_only=True):
    """Strategy and weighted scores for the shoots of one schedulerName. Without `scores` the fewest shoots decide.

    Users' own filters run unless they are in `disabled_filters` (`*`: all) and not in `enabled_filters`.
    """

    scheduler_name: str = DEFAULT_SCHEDULER
    strategy: str = SAME_REGION
    scores: tuple[WeightedScore, ...] = ()
    disabled_filters: tuple[str, ...] = ()
    enabled_filters: tuple[str, ...] = ()

    def runs_filter(self, name: str) -> bool:
        """True where a user's own filter takes part."""
        return name in self.enabled_filters or not {ALL, name} & {*self.disabled_filters}

    @property
    def added_affinity(self) -> tuple[AddedAffinity, ...]:
        """The affinity that operators add to that of shoots."""
        return tuple(
            each for plugin in self.scores if isinstance(plugin.args, SeedAffinity) for each in plugin.args.added
        )

    @property
    def reads_purpose(self) -> bool:
        """True where shoots of different purposes may get different seeds."""
        return bool(self.plugins) or any(each.purposes for each in self.added_affinity)

    @property
    def plugins(self) -> tuple[WeightedScore, ...]:
        """The plug-ins of users: those that respond over NATS, and those that are installed beside the scheduler."""
        return tuple(each for each in self.scores if isinstance(each.args, RemotePlugin))

    @property
    def installed(self) -> tuple[str, ...]:
        """The names of the plug-ins that are installed beside the scheduler."""
        return tuple(each.instance for each in self.scores if isinstance(each.args, InstalledPlugin))

    @property
    def remote(self) -> tuple[str, ...]:
        """The names of the plug-ins that respond over NATS."""
        return tuple(each.instance for each in self.plugins if not isinstance(each.args, InstalledPlugin))


def annotations_read(profiles: Iterable[SchedulingProfile]) -> frozenset[str]:
    """The annotations of Seeds that scores of some profiles read."""
    read = [plugin.args for each in profiles for plugin in each.scores if isinstance(plugin.args, AnnotationScore)]
    return frozenset(name for args in read for name in (args.annotation, valid_until(args.annotation)))


def valid_until(annotation: str) -> str:
    """The annotation with the instant (RFC 3339) after which the value of another counts as missing."""
    return f"{annotation}-valid-until"


PROFILE_WARNING = "profile-warning"
"""Metadata of a scheduler's micro service: what `doctor` warns of."""

PLUGIN_API_VERSION = "plugin.gardenbus.io/v1"
"""Of what plug-ins are requested about."""

PROFILE_PLUGINS = "profile-plugins"
"""The same: the subjects of the plug-ins of its profile."""
PROFILE_GIVEN_UP = "profile-given-up"
"""The same: the installed plug-ins of its profile that are given up, as their calls do not return."""

FILLED_BY_NAME = "no score depends on usage: seeds of equal scores are filled one after another, by name"


def is_filled_by_name(profile: SchedulingProfile) -> bool:
    """True where nothing of a profile keeps a seed from being filled before the next one by name."""
    return bool(profile.scores) and not any(each.reads_usage for each in profile.scores)


def limits_of(profile: SchedulingProfile) -> tuple[str, ...]:
    """Limits of a profile, for people: it runs, but less may depend on its scores than it says."""
    found = [FILLED_BY_NAME] if is_filled_by_name(profile) else []
    found += [
        f"{each.name} differs only for shoots for testing: the strategy {profile.strategy} leaves the others seeds that"
        " are equally near"
        for each in profile.scores
        if isinstance(each.args, RegionDistance) and profile.strategy != WEIGHTED
    ]
    return tuple(found)
