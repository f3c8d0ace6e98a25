"""Plug-ins that are installed beside the scheduler: found by their entry points, called in threads of their own."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from importlib.metadata import entry_points
from threading import Thread
from typing import Any, TypeVar, cast

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.scheduling_profiles import (
    ABOUT_CLASSES,
    InstalledPlugin,
    PluginPoint,
    SchedulingProfile,
)
from gardenbus.common.errors import SettingsInvalid, Unavailable
from gardenbus.scheduling.plugin_replies import PluginReply
from gardenbus.scheduling.seed_candidates import SeedCandidate

ENTRY_POINT_GROUP = "gardenbus.scheduler.plugins"

MOST_HUNG = 3
"""Threads of one plug-in whose calls have not returned; then it is given up until one of them does."""

_METHODS: Mapping[str, str] = {"Filter": "filter", "Score": "score", "Permit": "permit", "PostBind": "bound"}

SeedPlugin = object
"""An object with some of these methods, each of `(shoot, seed)`.

`score` returns a whole number from 0 to 100; `filter` the reason why the seed is not feasible, None when it passes.
`shoot` is what all shoots of a class share (namespace, purpose, provider, region), `seed` the whole manifest.
`permit` and `bound` are about one shoot, and have its name and uid besides: `permit` returns None where it may be
bound, the reason where it may not, or the seconds after which it is decided on again; `bound` is called after the bind.
"""

T = TypeVar("T")


class PluginReplyInvalid(Exception):
    """A reply that cannot be meant, with what is wrong with it."""


def load_plugins(profiles: Sequence[SchedulingProfile]) -> Mapping[str, SeedPlugin]:
    """Load the plug-ins that profiles name: each entry point is one, or makes one when called without arguments.

    Raises SettingsInvalid naming those that are missing or cannot be loaded.
    """
    found = {each.name: each for each in entry_points(group=ENTRY_POINT_GROUP)}
    plugins: dict[str, SeedPlugin] = {}
    problems: list[str] = []
    points = {name: set[PluginPoint]() for each in profiles for name in each.installed}
    for score in (score for each in profiles for score in each.plugins):
        if isinstance(score.args, InstalledPlugin):
            points[score.instance].update(set(score.args.points) - ABOUT_CLASSES)
    for name in sorted(points):
        if name not in found:
            there = f"there are {', '.join(sorted(found))}" if found else "there is none"
            problems.append(f"profiles: Installed/{name} has no entry point in the group {ENTRY_POINT_GROUP}: {there}")
            continue
        try:
            plugins[name] = _made(found[name].load())
        except Exception as error:  # noqa: BLE001  somebody else's code may fail in any way
            problems.append(f"entry point {name} = {found[name].value}: {type(error).__name__}: {error}")
            continue
        problems += [
            f"profiles: Installed/{name} has the point {point} and no method {_METHODS[point]}(shoot, seed)"
            for point in sorted(points[name] - _methods(plugins[name]).keys())
        ]
    if problems:
        raise SettingsInvalid(tuple(problems))
    return plugins


def _made(loaded: object) -> SeedPlugin:
    made = loaded if _methods(loaded) and not isinstance(loaded, type) else cast("Callable[[], object]", loaded)()
    if not _methods(made):
        raise ValueError(
            "it is no plug-in: it must have score(shoot, seed) or filter(shoot, seed), permit(shoot, seed) or "
            "bound(shoot, seed)"
        )
    return made


def _methods(plugin: object) -> Mapping[str, Callable[[Document, Document], Any]]:
    found = ((point, getattr(plugin, method, None)) for point, method in _METHODS.items())
    return {point: method for point, method in found if callable(method)}


class PluginCalls:
    """The calls of one plug-in, one after the other, each in a thread.

    A call that hangs is left behind in its thread, and holds up later calls of the same plug-in until its time is over.
    """

    def __init__(self, name: str, plugin: SeedPlugin) -> None:
        self._name = name
        self._methods = _methods(plugin)
        self._running: Future[Any] | None = None
        self._hung: set[Future[Any]] = set()

    @property
    def hung(self) -> int:
        """Calls that have been left behind, and have not returned."""
        self._hung = {each for each in self._hung if not each.done()}
        return len(self._hung)

    async def about_seeds(
        self,
        shoot: Document,
        seeds: Sequence[SeedCandidate],
        points: Sequence[PluginPoint],
        timeout_seconds: float,
    ) -> PluginReply:
        """The scores and rejections of seeds. Raises PluginReplyInvalid, and Unavailable when the time is over."""
        methods = {point: method for point, method in self._methods.items() if point in points}
        return await self._called(lambda: _reply(methods, shoot, seeds), timeout_seconds)

    async def permits(
        self, shoots: Sequence[tuple[Document, SeedCandidate]], timeout_seconds: float
    ) -> Sequence[str | float | None]:
        """The result of `permit` for each shoot and its seed. Raises as `about_seeds` does."""
        permit = self._methods["Permit"]
        return await self._called(lambda: [_permit(permit, shoot, seed) for shoot, seed in shoots], timeout_seconds)

    async def bound(self, shoots: Sequence[tuple[Document, SeedCandidate]], timeout_seconds: float) -> None:
        """Report shoots that were bound. Raises as `about_seeds` does: for the first that it raised about."""
        report = self._methods["PostBind"]
        raised = await self._called(lambda: [_raised(report, shoot, seed) for shoot, seed in shoots], timeout_seconds)
        if first := next((each for each in raised if each is not None), None):
            raise first

    async def _called(self, call: Callable[[], T | PluginReplyInvalid], timeout_seconds: float) -> T:
        if self.hung >= MOST_HUNG:
            raise Unavailable(f"it is given up until one of {MOST_HUNG} calls returns that hang")
        own: Future[T | PluginReplyInvalid] = Future()
        try:
            async with asyncio.timeout(timeout_seconds):
                while self._running is not None and not self._running.done():
                    await asyncio.wait([asyncio.wrap_future(self._running)])
                self._running = own
                own.set_running_or_notify_cancel()
                # A daemon: the end of the process does not wait for a call that hangs.
                Thread(target=lambda: own.set_result(_caught(call)), name=f"plug-in {self._name}", daemon=True).start()
                reply = await asyncio.shield(asyncio.wrap_future(own))
        except TimeoutError as error:
            if self._running is own:
                self._running = None
                self._hung.add(own)
            raise Unavailable(f"its call has not returned within {timeout_seconds:g} s") from error
        if isinstance(reply, PluginReplyInvalid):
            raise reply
        return reply


def _caught(call: Callable[[], T | PluginReplyInvalid]) -> T | PluginReplyInvalid:
    try:
        return call()
    except PluginReplyInvalid as error:
        return error


def _permit(permit: Callable[[Document, Document], Any], shoot: Document, seed: SeedCandidate) -> str | float | None:
    """The result for one shoot. Raises PluginReplyInvalid for an exception, or what is none of the three."""
    name = shoot["name"]
    try:
        result = permit(dict(shoot), seed.document)
    except BaseException as error:
        raise PluginReplyInvalid(f"it raised {type(error).__name__} about {name}: {error}".rstrip(": ")) from error
    if result is not None and (isinstance(result, bool) or not isinstance(result, str | int | float)):
        raise PluginReplyInvalid(f"its permit of {name} is {result!r}, which is neither a text nor a number nor None")
    return result


def _raised(
    report: Callable[[Document, Document], Any], shoot: Document, seed: SeedCandidate
) -> PluginReplyInvalid | None:
    try:
        report(dict(shoot), seed.document)
    except BaseException as error:  # noqa: BLE001  as above
        return PluginReplyInvalid(f"it raised {type(error).__name__} about {shoot['name']}: {error}".rstrip(": "))
    return None


def _reply(
    methods: Mapping[str, Callable[[Document, Document], Any]], shoot: Document, seeds: Sequence[SeedCandidate]
) -> PluginReply | PluginReplyInvalid:
    """The reply, or what is wrong with it: a score is missing for no seed, whatever somebody else's code raises."""
    scores: dict[str, int] = {}
    rejected: dict[str, str] = {}
    for seed in seeds:
        try:
            document = seed.document
            reason = methods["Filter"](dict(shoot), document) if "Filter" in methods else None
            points = methods["Score"](dict(shoot), document) if "Score" in methods else 0
        except BaseException as error:  # noqa: BLE001  somebody else's code may raise anything, and nobody else sees it
            return PluginReplyInvalid(f"it raised {type(error).__name__} about {seed.name}: {error}".rstrip(": "))
        if not isinstance(points, int) or isinstance(points, bool):
            return PluginReplyInvalid(f"its score of {seed.name} is {points!r}, which is no whole number")
        if reason is not None and not isinstance(reason, str):
            return PluginReplyInvalid(
                f"its filter of {seed.name} returned {reason!r}, which is neither a text nor None"
            )
        scores[seed.name] = points
        if reason is not None:
            rejected[seed.name] = reason
    return PluginReply(scores, rejected)
