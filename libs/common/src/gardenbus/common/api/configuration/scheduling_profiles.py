"""`profiles` of a SchedulerConfiguration: presets, with `plugins` and `pluginConfig` merged over them.

As in kube-scheduler: `multiPoint` first, the lists of an extension point over it, and in each `disabled` before
`enabled`. A plug-in that is named again has its new weight; pluginConfig replaces the arguments of a preset as a whole.
Everything that would have no effect is a problem, with its path.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

import msgspec

from gardenbus.common.api.configuration import reader
from gardenbus.common.api.configuration.reader import Entries, Field, Table
from gardenbus.common.api.configuration.score_args import INSTALLED, REMOTE, SCORES, ReadArgs
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.scheduling_profiles import (
    ALL,
    BUILT_IN_FILTERS,
    ResourcesFit,
    SchedulingProfile,
    ScoreArgs,
    ShapePoint,
    WeightedScore,
)
from gardenbus.common.api.garden.shoots import DEFAULT_SCHEDULER
from gardenbus.common.api.garden.strategies import SAME_REGION, STRATEGIES, WEIGHTED
from gardenbus.common.api.names import LABEL

OwnFilters = Callable[[], Collection[str]]
"""Names of users' own filters that are installed."""

FILLS_TO_NINE_TENTHS = (ShapePoint(0, 0), ShapePoint(90, 10), ShapePoint(100, 5))

_EXPLICIT = (("SeedAffinity", 4), ("InterShootAffinity", 4), ("ShootTopologySpread", 3), ("SeedZoneFit", 2))
"""Weights of both presets: what somebody wishes outweighs what is good for all."""

PRESETS: Mapping[str, Mapping[str, int]] = {
    "spread": dict((*_EXPLICIT, ("SeedResourcesFit", 1), ("SeedResourcesBalancedAllocation", 1))),
    "binpack": dict((*_EXPLICIT, ("SeedResourcesFit", 2))),
}
"""Scores of each preset with their weights."""

_PRESET_ARGS: Mapping[str, Mapping[str, ScoreArgs]] = {
    "spread": {},
    "binpack": {"SeedResourcesFit": ResourcesFit(type="RequestedToCapacityRatio", shape=FILLS_TO_NINE_TENTHS)},
}


_NAMED_BY = {REMOTE: "that it responds under", INSTALLED: "of its entry point"}
"""Plug-ins of users: what the name of an instance is."""


class _Named(msgspec.Struct, frozen=True):
    name: str = ""
    weight: int | None = None


class _Config(msgspec.Struct, frozen=True):
    name: str = ""
    args: Document = {}


class ProfileDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A profile as written."""

    scheduler_name: str = DEFAULT_SCHEDULER
    strategy: str = ""
    allow_any_region: bool | None = None
    preset: str = ""
    points: Mapping[str, Mapping[str, Sequence[_Named]]] = {}
    configs: tuple[_Config, ...] = ()


def _point(name: str) -> Table:
    named = {"name": Field("name", reader.name, is_required=True)}
    weighed = {**named, "weight": Field("weight", reader.weight)}
    enabled = weighed if name != "filter" else named
    return {
        "enabled": Entries(f"points.{name}.enabled", enabled, _Named, "plug-ins", may_be_empty=True),
        "disabled": Entries(f"points.{name}.disabled", named, _Named, "plug-ins", may_be_empty=True),
    }


PROFILES = Entries(
    "profiles",
    {
        "schedulerName": Field("scheduler_name", reader.label),
        "candidateDeterminationStrategy": Field("strategy", reader.one_of(*STRATEGIES)),
        "allowAnyRegion": Field("allow_any_region", reader.flag),
        "preset": Field("preset", reader.one_of(*PRESETS)),
        "plugins": {name: _point(name) for name in ("multiPoint", "filter", "score")},
        "pluginConfig": Entries(
            "configs",
            {"name": Field("name", reader.name, is_required=True), "args": Field("args", reader.mapping)},
            _Config,
            "plug-ins with arguments",
            may_be_empty=True,
        ),
    },
    ProfileDraft,
    "profiles",
)
"""Entry of the table of a SchedulerConfiguration."""


def completed(
    drafts: Sequence[ProfileDraft], strategy: str, own_filters: OwnFilters | None, problems: list[str]
) -> tuple[SchedulingProfile, ...]:
    """The profiles of what was read; `strategy` is that of profiles without one. Adds to the problems.

    Names of filters are looked up among `own_filters`; without it any name is accepted.
    """
    first: dict[str, int] = {}
    profiles: list[SchedulingProfile] = []
    for number, draft in enumerate(drafts):
        path = f"profiles[{number}]"
        before = first.setdefault(draft.scheduler_name, number)
        if before != number:
            problems.append(f"{path}.schedulerName: {draft.scheduler_name!r} is the name of profiles[{before}] too")
        merged = _MergedProfile(draft, path, own_filters, problems)
        profiles.append(merged.profile(draft.strategy or strategy or SAME_REGION))
    return tuple(profiles)


class _Place(NamedTuple):
    """A plug-in in a list: where it is named, and its full name."""

    path: str
    name: str

    @property
    def plugin(self) -> str:
        """The name without that of the instance."""
        return self.name.partition("/")[0]


class _MergedProfile:
    """One profile while it is merged. `weights` are the scores so far, those of the preset first."""

    def __init__(self, draft: ProfileDraft, path: str, own_filters: OwnFilters | None, problems: list[str]) -> None:
        self._draft = draft
        self._path = path
        self._own_filters = own_filters
        self._problems = problems
        self._weights = dict(PRESETS.get(draft.preset, {}))
        self._disabled_filters: list[str] = []
        self._enabled_filters: list[str] = []
        for point in ("multiPoint", "filter", "score"):
            self._merge(point)
        self._args = dict(self._configured())

    def profile(self, strategy: str) -> SchedulingProfile:
        """The profile; what cannot be made of it is a problem."""
        self._check_region(strategy)
        found = ((name, weight, self._args_of(name)) for name, weight in self._weights.items())
        return SchedulingProfile(
            scheduler_name=self._draft.scheduler_name,
            strategy=strategy,
            scores=tuple(WeightedScore(name, weight, args) for name, weight, args in found if args is not None),
            disabled_filters=tuple(self._disabled_filters),
            enabled_filters=tuple(self._enabled_filters),
        )

    def _merge(self, point: str) -> None:
        for place, _ in self._named(point, "disabled"):
            if place.name == ALL:
                self._disable_all(point)
            elif point != "filter" and self._weights.pop(place.name, None) is not None:
                continue
            elif self._is_filter(place, point):
                self._disable_filter(place)
            elif not self._unknown(place, point):
                self._problems.append(f"{place.path}: {place.name} is not enabled, so that there is nothing to disable")
        for place, weight in self._named(point, "enabled"):
            if self._is_filter(place, point):
                self._enable_filter(place)
            elif not self._unknown(place, point):
                self._weights[place.name] = weight

    def _named(self, point: str, which: str) -> Iterator[tuple[_Place, int]]:
        """The plug-ins of a list, each once, with their weights."""
        seen: set[str] = set()
        for number, each in enumerate(self._draft.points.get(point, {}).get(which, ())):
            path = f"{self._path}.plugins.{point}.{which}[{number}].name"
            if each.name in seen:
                self._problems.append(f"{path}: {each.name} is named twice")
            elif each.name and not (each.name == ALL and which == "enabled"):
                yield _Place(path, each.name), each.weight or 1
            elif each.name:
                self._problems.append(f"{path}: {ALL} stands only in a list of disabled plug-ins")
            seen.add(each.name)

    def _disable_all(self, point: str) -> None:
        if point == "filter":
            self._disabled_filters.append(ALL)
        else:
            self._weights.clear()

    def _disable_filter(self, place: _Place) -> None:
        if place.name in BUILT_IN_FILTERS:
            self._problems.append(f"{place.path}: {place.name} cannot be disabled: it is a promise, not a preference")
        self._disabled_filters.append(place.name)

    def _enable_filter(self, place: _Place) -> None:
        if place.name in BUILT_IN_FILTERS:
            self._problems.append(f"{place.path}: {place.name} takes part in every profile")
        self._enabled_filters.append(place.name)

    def _is_filter(self, place: _Place, point: str) -> bool:
        """True for the name of a filter, where a point has any."""
        if point == "score" or place.plugin in SCORES:
            return False
        if place.name in BUILT_IN_FILTERS:
            return True
        return point == "filter" if self._own_filters is None else place.name in self._own_filters()

    def _unknown(self, place: _Place, point: str) -> bool:
        """Add to the problems where there is no such plug-in at this point."""
        if place.name in BUILT_IN_FILTERS:
            self._problems.append(f"{place.path}: {place.name} has no extension point {point}")
            return True
        if place.plugin not in SCORES:
            own = self._own_filters() if self._own_filters is not None and point != "score" else ()
            near = get_close_matches(place.plugin, [*SCORES, *own], n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            self._problems.append(f"{place.path}: there is no such plug-in: {place.name}{hint}")
            return True
        if point == "filter":
            hint = ": enable it under score; its args.points has Filter" if place.plugin in _NAMED_BY else ""
            self._problems.append(f"{place.path}: {place.plugin} has no extension point filter{hint}")
            return True
        _, slash, instance = place.name.partition("/")
        if place.plugin in _NAMED_BY and not slash:
            self._problems.append(
                f"{place.path}: {place.plugin} needs the name {_NAMED_BY[place.plugin]}, as {place.plugin}/carbon"
            )
            return True
        if slash and not LABEL.fullmatch(instance):
            self._problems.append(f"{place.path}: the instance {instance!r} must be a lower-case RFC 1123 label")
            return True
        return False

    def _configured(self) -> Iterator[tuple[str, ScoreArgs]]:
        """The arguments of pluginConfig by name."""
        seen: set[str] = set()
        for number, each in enumerate(self._draft.configs):
            path = f"{self._path}.pluginConfig[{number}]"
            place = _Place(f"{path}.name", each.name)
            if each.name in seen:
                self._problems.append(f"{place.path}: {each.name} is named twice")
            elif each.name and not self._unknown(place, "score"):
                yield from self._arguments(place, path, each.args)
            seen.add(each.name)

    def _arguments(self, place: _Place, path: str, args: Document) -> Iterator[tuple[str, ScoreArgs]]:
        if place.name not in self._weights:
            self._problems.append(f"{place.path}: {place.name} is not enabled in this profile")
        kind = SCORES[place.plugin]
        if kind.read is None:
            self._problems.append(f"{path}.args: {place.plugin} has none")
            return
        found = kind.read(ReadArgs(args, f"{path}.args", self._problems))
        if found is not None:
            yield place.name, found

    def _args_of(self, name: str) -> ScoreArgs | None:
        """The arguments of an enabled score: configured, the preset's, or the defaults."""
        if name in self._args:
            return self._args[name]
        if any(each.name == name for each in self._draft.configs):
            return None  # they are a problem already
        if name in PRESETS.get(self._draft.preset, {}):
            return _PRESET_ARGS[self._draft.preset].get(name, SCORES[name].default)
        kind = SCORES[name.partition("/")[0]]
        if kind.requires:
            self._problems.append(f"{self._path}.pluginConfig: {name} needs {kind.requires}")
            return None
        return kind.default

    def _check_region(self, strategy: str) -> None:
        allowed = self._draft.allow_any_region
        has_distance = any(name.partition("/")[0] == "MinimalDistance" for name in self._weights)
        if strategy == WEIGHTED and not has_distance and not allowed:
            self._problems.append(
                f"{self._path}.candidateDeterminationStrategy: Weighted without the score MinimalDistance places shoots"
                " in any region: enable it, or say so by allowAnyRegion: true"
            )
        if allowed is not None and (strategy != WEIGHTED or has_distance):
            self._problems.append(
                f"{self._path}.allowAnyRegion: has an effect only with the strategy Weighted without MinimalDistance"
            )
