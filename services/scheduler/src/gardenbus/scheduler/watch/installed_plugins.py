"""Plug-ins that are installed beside the scheduler: found by their entry points, called in threads of their own."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from importlib.metadata import entry_points
from threading import Thread
from typing import Any, cast

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.scheduling_profiles import PluginPoint, SchedulingProfile
from gardenbus.common.errors import SettingsInvalid, Unavailable
from gardenbus.scheduling.plugin_replies import PluginReply
from gardenbus.scheduling.seed_candidates import SeedCandidate

ENTRY_POINT_GROUP = "gardenbus.scheduler.plugins"

_METHODS: Mapping[str, str] = {"Filter": "filter", "Score": "score"}

SeedPlugin = object
"""An object with one of these methods or both, each of `(shoot, seed)`.

`score` returns a whole number from 0 to 100; `filter` the reason why the seed is not feasible, None when it passes.
`shoot` is what all shoots of a class share (namespace, purpose, provider, region), `seed` the whole manifest.
"""


class PluginReplyInvalid(Exception):
    """A reply that cannot be meant, with what is wrong with it."""


def load_plugins(profiles: Sequence[SchedulingProfile]) -> Mapping[str, SeedPlugin]:
    """Load the plug-ins that profiles name: each entry point is one, or makes one when called without arguments.

    Raises SettingsInvalid naming those that are missing or cannot be loaded.
    """
    found = {each.name: each for each in entry_points(group=ENTRY_POINT_GROUP)}
    plugins: dict[str, SeedPlugin] = {}
    problems: list[str] = []
    for name in sorted({name for each in profiles for name in each.installed}):
        if name not in found:
            there = f"there are {', '.join(sorted(found))}" if found else "there is none"
            problems.append(f"profiles: Installed/{name} has no entry point in the group {ENTRY_POINT_GROUP}: {there}")
            continue
        try:
            plugins[name] = _made(found[name].load())
        except Exception as error:  # noqa: BLE001  somebody else's code may fail in any way
            problems.append(f"entry point {name} = {found[name].value}: {type(error).__name__}: {error}")
    if problems:
        raise SettingsInvalid(tuple(problems))
    return plugins


def _made(loaded: object) -> SeedPlugin:
    made = loaded if _methods(loaded) and not isinstance(loaded, type) else cast("Callable[[], object]", loaded)()
    if not _methods(made):
        raise ValueError("it is no plug-in: it must have score(shoot, seed) or filter(shoot, seed)")
    return made


def _methods(plugin: object) -> Mapping[str, Callable[[Document, Document], Any]]:
    found = ((point, getattr(plugin, method, None)) for point, method in _METHODS.items())
    return {point: method for point, method in found if callable(method)}


class PluginCalls:
    """The calls of one plug-in, one after the other: a call that hangs keeps later ones of the same plug-in alone."""

    def __init__(self, name: str, plugin: SeedPlugin) -> None:
        self._name = name
        self._methods = _methods(plugin)
        self._running: Future[PluginReply | PluginReplyInvalid] | None = None

    async def called(
        self,
        shoot: Document,
        seeds: Sequence[SeedCandidate],
        points: Sequence[PluginPoint],
        timeout_seconds: float,
    ) -> PluginReply:
        """The scores and rejections of seeds. Raises PluginReplyInvalid, and Unavailable when the time is over."""
        try:
            async with asyncio.timeout(timeout_seconds):
                while self._running is not None and not self._running.done():
                    await asyncio.wait([asyncio.wrap_future(self._running)])
                call = self._running = Future()
                call.set_running_or_notify_cancel()
                methods = {point: method for point, method in self._methods.items() if point in points}
                # A daemon: the end of the process does not wait for a call that hangs.
                Thread(
                    target=lambda: call.set_result(_reply(methods, shoot, seeds)),
                    name=f"plug-in {self._name}",
                    daemon=True,
                ).start()
                reply = await asyncio.wrap_future(call)
        except TimeoutError as error:
            raise Unavailable(f"its call has not returned within {timeout_seconds:g} s") from error
        if isinstance(reply, PluginReplyInvalid):
            raise reply
        return reply


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
