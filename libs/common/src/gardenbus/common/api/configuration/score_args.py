"""Arguments of score plug-ins: a table of fields for each, and what tables cannot check."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, cast, get_args

import msgspec

from gardenbus.common.api.configuration import reader
from gardenbus.common.api.configuration.reader import Entries, Field, Table
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.scheduling_profiles import (
    AddedAffinity,
    AnnotationScore,
    BalancedAllocation,
    InstalledPlugin,
    OnError,
    PluginPoint,
    PreferredSeeds,
    RegionDistance,
    RemotePlugin,
    ResourcesFit,
    ScoreArgs,
    SeedAffinity,
    ShapePoint,
    ShootAffinity,
    TopologySpread,
    WeightedResource,
    ZoneFit,
)
from gardenbus.common.api.garden.shoots import PURPOSES
from gardenbus.common.api.numbers import thousandths
from gardenbus.common.api.selectors import LabelSelector, parse_selector

MOST_PREFERRED = 8
"""Preferred terms of one entry of addedAffinity."""

_RATIO = "RequestedToCapacityRatio"
_TYPES = ("LeastAllocated", "MostAllocated", _RATIO)
_PER_CENT, _TOP_SCORE = 100, 10


class ReadArgs(NamedTuple):
    """Arguments as written, their path, and the list for what is wrong with them."""

    args: Document
    path: str
    problems: list[str]

    def values(self, table: Table) -> dict[str, Any]:
        """The values by a table; problems are added with their whole paths."""
        reading = reader.read(self.args, table)
        self.problems.extend(f"{self.path}.{problem.removeprefix('configuration: ')}" for problem in reading.problems)
        return reading.values

    def report(self, place: str, problem: str) -> None:
        """Add a problem at a place below the arguments."""
        self.problems.append(f"{self.path}.{place}: {problem}")


class ScoreKind(NamedTuple):
    """A score plug-in. `read` reads its arguments, None where it has none.

    `requires`: the arguments without which it cannot be enabled, for people.
    """

    default: ScoreArgs
    read: Callable[[ReadArgs], ScoreArgs | None] | None = None
    requires: str = ""


def _whole(least: int, most: int) -> reader.FieldParser:
    return reader.checked(
        lambda value: isinstance(value, int) and not isinstance(value, bool) and least <= value <= most,
        f"must be a whole number from {least} to {most}",
    )


class _Resource(msgspec.Struct, frozen=True):
    name: str = ""
    weight: int = 1


class _Point(msgspec.Struct, frozen=True):
    utilization: int = 0
    score: int = 0


_RESOURCES = Entries(
    "resources",
    {"name": Field("name", reader.name, is_required=True), "weight": Field("weight", reader.weight)},
    _Resource,
    "resources",
)
_SHAPE = Entries(
    "shape",
    {
        "utilization": Field("utilization", _whole(0, _PER_CENT), is_required=True),
        "score": Field("score", _whole(0, _TOP_SCORE), is_required=True),
    },
    _Point,
    "points",
)


def _resources(read: ReadArgs, values: Mapping[str, Any], place: str) -> tuple[WeightedResource, ...] | None:
    """The resources; None where none are named."""
    named: Sequence[_Resource] | None = values.get("resources")
    if named is None:
        return None
    names = [each.name for each in named]
    for number, name in enumerate(names):
        if name in names[:number]:
            read.report(f"{place}[{number}].name", f"{name} is named twice")
    return tuple(WeightedResource(each.name, each.weight) for each in named)


def _fit(read: ReadArgs) -> ScoreArgs | None:
    before = len(read.problems)
    values = read.values(
        {"scoringStrategy": {"type": Field("type", reader.one_of(*_TYPES)), "resources": _RESOURCES, "shape": _SHAPE}}
    )
    kind = values.get("type", _TYPES[0])
    points: Sequence[_Point] = values.get("shape", ())
    shape = tuple(ShapePoint(each.utilization, each.score) for each in points)
    if bool(shape) != (kind == _RATIO) and not any(".shape" in problem for problem in read.problems[before:]):
        read.report("scoringStrategy.shape", f"belongs to the type {_RATIO}, which needs it")
    for number in range(1, len(shape)):
        if shape[number].utilization <= shape[number - 1].utilization:
            read.report(f"scoringStrategy.shape[{number}].utilization", "must be above that of the point before")
    resources = _resources(read, values, "scoringStrategy.resources")
    return ResourcesFit(type=kind, shape=shape, **({"resources": resources} if resources is not None else {}))


def _balanced(read: ReadArgs) -> ScoreArgs | None:
    values = read.values({"resources": _RESOURCES})
    named: Sequence[_Resource] = values.get("resources", ())
    for number, each in enumerate(named):
        if each.weight != 1:
            read.report(f"resources[{number}].weight", f"must be 1: balance has no weights, is {each.weight}")
    resources = _resources(read, values, "resources")
    return BalancedAllocation(resources=resources) if resources is not None else BalancedAllocation()


def _distance(read: ReadArgs) -> ScoreArgs | None:
    return RegionDistance(**read.values({"farthest": Field("farthest", reader.count)}))


class _Preferred(msgspec.Struct, frozen=True):
    weight: int = 1
    preference: object = None


class _Added(msgspec.Struct, frozen=True):
    purposes: tuple[str, ...] = ()
    required: Sequence[object] = ()
    preferred: tuple[_Preferred, ...] = ()


def _purposes(value: Any) -> tuple[str, ...]:
    named = cast("list[object]", value) if isinstance(value, list) else []
    if not named or any(each not in PURPOSES for each in named):
        raise ValueError(f"must be a list of purposes ({', '.join(PURPOSES)}), is {value!r}")
    return tuple(map(str, dict.fromkeys(named)))


def _is_filled_list(value: Any) -> bool:
    return isinstance(value, list) and bool(cast("list[object]", value))


_PREFERRED = Entries(
    "preferred",
    {
        "weight": Field("weight", reader.weight, is_required=True),
        "preference": Field("preference", reader.mapping, is_required=True),
    },
    _Preferred,
    "preferred terms",
)
_ADDED: Table = {
    "addedAffinity": Entries(
        "added",
        {
            "purposes": Field("purposes", _purposes),
            "required": Field("required", reader.checked(_is_filled_list, "must be a list of label selectors")),
            "preferred": _PREFERRED,
        },
        _Added,
        "affinities",
    )
}


def _affinity(read: ReadArgs) -> ScoreArgs | None:
    entries: Sequence[_Added] = read.values(_ADDED).get("added", ())
    return SeedAffinity(
        added=tuple(_added(each, f"addedAffinity[{number}]", read) for number, each in enumerate(entries))
    )


def _added(entry: _Added, place: str, read: ReadArgs) -> AddedAffinity:
    if not entry.required and not entry.preferred:
        read.report(place, "needs required or preferred terms")
    if len(entry.preferred) > MOST_PREFERRED:
        read.report(f"{place}.preferred", f"must not have more than {MOST_PREFERRED} terms")
    required = (_selector(each, f"{place}.required[{number}]", read) for number, each in enumerate(entry.required))
    preferred = (
        PreferredSeeds(each.weight, _selector(each.preference, f"{place}.preferred[{number}].preference", read))
        for number, each in enumerate(entry.preferred)
    )
    return AddedAffinity(purposes=entry.purposes, required=tuple(required), preferred=tuple(preferred))


def _selector(written: object, place: str, read: ReadArgs) -> LabelSelector:
    """A label selector that is not empty; an empty one where it is a problem."""
    if written is None:
        return LabelSelector()
    fields: Document = cast("Document", written) if isinstance(written, dict) else {}
    for name in fields.keys() - {"matchLabels", "matchExpressions"}:
        read.report(f"{place}.{name}", "no such field; there are matchLabels and matchExpressions")
    try:
        selector = parse_selector(fields)
    except ValueError as error:
        read.report(place, str(error))
        return LabelSelector()
    if selector == LabelSelector():
        read.report(place, "must be a label selector that is not empty")
    return selector


def _decimal(value: Any) -> int:
    found = thousandths(str(value)) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
    if found is None:
        raise ValueError(f"must be a decimal of at most three places, is {value!r}")
    return found


_ANNOTATION: Table = {
    "annotation": Field("annotation", reader.name, is_required=True),
    "min": Field("least", _decimal, is_required=True),
    "max": Field("most", _decimal, is_required=True),
    "reverse": Field("reverse", reader.flag),
    "missing": Field("missing", _whole(0, 100)),
}


def _annotation(read: ReadArgs) -> ScoreArgs | None:
    values = read.values(_ANNOTATION)
    if not {"annotation", "least", "most"} <= values.keys():
        return None
    if values["least"] >= values["most"]:
        read.report("min", "must be below max")
        return None
    return AnnotationScore(**values)


_POINTS = get_args(PluginPoint)


def _points(value: Any) -> tuple[PluginPoint, ...]:
    named = cast("list[object]", value) if isinstance(value, list) else []
    if not named or any(each not in _POINTS for each in named):
        raise ValueError(f"must be a list of {', '.join(_POINTS)}, is {value!r}")
    return tuple(each for each in _POINTS if each in named)


_PLUGIN: Table = {
    "points": Field("points", _points),
    "deadlineMs": Field("deadline_ms", _whole(1, 5_000)),
    "onError": Field("on_error", reader.one_of(*get_args(OnError))),
    "validForSeconds": Field("valid_for_seconds", _whole(1, 86_400)),
}


def _plugin(kind: type[RemotePlugin], read: ReadArgs) -> ScoreArgs | None:
    values = read.values(_PLUGIN)
    if (milliseconds := values.pop("deadline_ms", None)) is not None:
        values["deadline_seconds"] = milliseconds / 1000
    if "PostBind" in values.get("points", ()) and kind is RemotePlugin:
        read.report("points", "PostBind is for Installed plug-ins: a program follows the subjects garden.binding.>")
    return kind(**values)


REMOTE = "Remote"
"""The plug-in whose instances are programs of others."""

INSTALLED = "Installed"
"""The plug-in whose instances are objects of others, installed beside the scheduler."""

SCORES: Mapping[str, ScoreKind] = {
    "SeedResourcesFit": ScoreKind(ResourcesFit(), _fit),
    "SeedResourcesBalancedAllocation": ScoreKind(BalancedAllocation(), _balanced),
    "MinimalDistance": ScoreKind(RegionDistance(), _distance),
    "SeedAffinity": ScoreKind(SeedAffinity(), _affinity),
    "SeedZoneFit": ScoreKind(ZoneFit()),
    REMOTE: ScoreKind(RemotePlugin(), partial(_plugin, RemotePlugin)),
    INSTALLED: ScoreKind(InstalledPlugin(), partial(_plugin, InstalledPlugin)),
    "SeedAnnotation": ScoreKind(ZoneFit(), _annotation, "args with annotation, min and max"),
    "ShootTopologySpread": ScoreKind(TopologySpread()),
    "InterShootAffinity": ScoreKind(ShootAffinity()),
}
"""Score plug-ins by name. All score, and none of them has another extension point."""
