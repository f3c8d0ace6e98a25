"""Plug-ins of a profile: what they reply about a class of shoots is requested, checked and kept for a while.

One responds over NATS, or is installed beside the scheduler and called in a thread; what follows is the same for both.

    class without a valid reply ──► request ──► reply in time: the class is decided on it
                                       │  └──► late: it counts from then on; what waited went on without it
                                       └─────► none, or one that cannot be meant: `onError` of the plug-in

One request for a class is under way at a time, about the seeds for which nothing valid is kept: a reply about a seed
counts while the Seed has the scheduling generation that it was about. What is out of date is requested anew in the
background and counts until the reply comes, at most twice its time. After `MOST_FAILURES` failures in a row a plug-in
is left alone for `PAUSE_SECONDS`.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import structlog

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.garden.scheduling_profiles import (
    ABOUT_CLASSES,
    PLUGIN_API_VERSION,
    PROFILE_GIVEN_UP,
    SchedulingProfile,
)
from gardenbus.common.api.keys import Subjects
from gardenbus.common.controller.cancellation import cancelled
from gardenbus.common.controller.repeated_lines import RepeatedLines
from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.bus import Bus
from gardenbus.common.ports.clock import Clock
from gardenbus.scheduler.metrics import SchedulerMetrics
from gardenbus.scheduler.watch.installed_plugins import PluginReplyInvalid, SeedPlugin
from gardenbus.scheduler.watch.permits import Permits
from gardenbus.scheduler.watch.user_plugins import (
    LONGEST_REPLY_SECONDS,
    MOST_BYTES,
    UserPlugin,
    user_plugin,
)
from gardenbus.scheduling.equivalence_classes import Constraints
from gardenbus.scheduling.feasible_seeds import feasible_seeds_of
from gardenbus.scheduling.plugin_replies import NO_REPLY, ClassReplies, PluginInput, PluginReply, input_to_plugins
from gardenbus.scheduling.snapshot import Landscape

MOST_POINTS = 100
MOST_CLASSES = 4_096
"""Classes whose replies are kept; then all are dropped, and requested anew on demand."""

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class _Reply(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    scores: Mapping[str, int] = {}
    rejected: Mapping[str, str] = {}
    default: int = 0
    valid_for_seconds: float | None = None


_decode = json_decoder(_Reply)
_encode = msgspec.json.Encoder().encode


class _AboutSeed(NamedTuple):
    """A reply about one seed: at a scheduling generation, of an instant, and for how long."""

    generation: int | None
    points: int
    rejection: str
    at: float
    valid_seconds: float

    def is_fresh(self, now: float) -> bool:
        return now < self.at + self.valid_seconds

    def counts(self, now: float) -> bool:
        return now < self.at + 2 * self.valid_seconds


@dataclass(slots=True, eq=False)
class _Plugin:
    """A plug-in of a profile with its replies about classes."""

    user: UserPlugin
    kept: dict[PluginInput, dict[str, _AboutSeed]] = field(default_factory=dict[PluginInput, dict[str, _AboutSeed]])
    under_way: dict[PluginInput, asyncio.Task[None]] = field(default_factory=dict[PluginInput, asyncio.Task[None]])


class Plugins:
    """The plug-ins of one profile. `replies` is where decisions read."""

    def __init__(  # noqa: PLR0913  the parts that plug-ins are put together from
        self,
        profile: SchedulingProfile,
        *,
        bus: Bus,
        subjects: Subjects,
        clock: Clock,
        metrics: SchedulerMetrics,
        replies: dict[PluginInput, ClassReplies],
        installed: Mapping[str, SeedPlugin] = {},
    ) -> None:
        self._profile = profile
        self._bus = bus
        self._subjects = subjects
        self._clock = clock
        self._metrics = metrics
        self._replies = replies
        lines = RepeatedLines("plugin.failed", clock.monotonic)
        self._users = [
            user_plugin(each, installed, clock=clock, metrics=metrics, lines=lines) for each in profile.plugins
        ]
        self._plugins = [_Plugin(each) for each in self._users if ABOUT_CLASSES.intersection(each.args.points)]
        self.permits = Permits(self._users, profile.scheduler_name, bus, subjects)

    @property
    def deadline_seconds(self) -> float:
        """The longest wait of a class."""
        return max(each.args.deadline_seconds for each in self._users)

    def describe_in(self, metadata: dict[str, str]) -> None:
        """Have the metadata of a micro service name the plug-ins that are given up, from now on."""

        def describe() -> None:
            given_up = [each.short_name for each in self._users if each.is_given_up]
            metadata[PROFILE_GIVEN_UP] = " ".join(given_up)

        for each in self._users:
            each.changed = describe

    async def close(self) -> None:
        """End the requests that are under way."""
        await cancelled([task for plugin in self._plugins for task in plugin.under_way.values()])
        await self.permits.close()

    def prepare(self, constraints: Constraints, landscape: Landscape) -> Sequence[asyncio.Task[None]]:
        """Request what is missing or out of date about a class; returns the requests that it has to wait for."""
        key, now = input_to_plugins(constraints), self._clock.monotonic()
        seeds = self._seeds(constraints, landscape)
        waiting: list[asyncio.Task[None]] = []
        for plugin in self._plugins:
            about = plugin.kept.get(key, {})
            valid = {name: each for name, each in about.items() if each.counts(now) and name in landscape.seeds_by_name}
            if len(valid) < len(about):
                plugin.kept[key] = valid
                self._publish(key)
            due = {
                name: generation
                for name, generation in seeds.items()
                if name not in valid or valid[name].generation != generation or not valid[name].is_fresh(now)
            }
            if not due:
                continue
            missing = any(name not in valid or valid[name].generation != due[name] for name in due)
            request = self._request(plugin, key, due, landscape)
            if missing and request is not None:
                waiting.append(request)
        return waiting

    def problem(self, constraints: Constraints) -> str:
        """The reason for which a class is not decided on: a plug-in whose `onError` is Fail has not replied."""
        key, now = input_to_plugins(constraints), self._clock.monotonic()
        for plugin in self._plugins:
            if plugin.user.args.on_error == "Fail" and not any(
                each.counts(now) for each in plugin.kept.get(key, {}).values()
            ):
                return plugin.user.missing
        return ""

    def states(self, constraints: Constraints | None = None) -> list[dict[str, Any]]:
        """The plug-ins for people: the age of what counts about a class, and the last failure."""
        now = self._clock.monotonic()
        key = input_to_plugins(constraints) if constraints is not None else None
        kept = {each.user.name: each.kept.get(key, {}) if key is not None else {} for each in self._plugins}
        found: list[dict[str, Any]] = []
        for user in self._users:
            ages = [now - each.at for each in kept.get(user.name, {}).values()]
            state: dict[str, Any] = {"name": user.name, "ageSeconds": round(max(ages)) if ages else None}
            found.append({**state, "failures": user.failures, "problem": user.problem or None})
        return found

    def _seeds(self, constraints: Constraints, landscape: Landscape) -> dict[str, int | None]:
        """The seeds that a class may use, but for what the plug-ins themselves reject, by scheduling generation."""
        feasible = feasible_seeds_of(constraints, landscape).feasible
        seeds = {each.name: each.scheduling_generation for each in landscape.index.seeds_in(feasible)}
        for name in self._rejected(constraints):
            if (rejected := landscape.seeds_by_name.get(name)) is not None:
                seeds[name] = rejected.scheduling_generation
        return seeds

    def _rejected(self, constraints: Constraints) -> Iterable[str]:
        key = input_to_plugins(constraints)
        kept = (plugin.kept.get(key, {}) for plugin in self._plugins)
        return {name for about in kept for name, each in about.items() if each.rejection}

    def _request(
        self, plugin: _Plugin, key: PluginInput, due: Mapping[str, int | None], landscape: Landscape
    ) -> asyncio.Task[None] | None:
        """The request about a class that is under way, or a new one; None while the plug-in is left alone."""
        if (under_way := plugin.under_way.get(key)) is not None:
            return under_way
        if plugin.user.is_left_alone:
            return None
        if len(plugin.kept) >= MOST_CLASSES:
            for each in self._plugins:  # whose replies decisions read together
                each.kept.clear()
            self._replies.clear()
        task = asyncio.create_task(
            self._requested(plugin, key, due, landscape), name=f"plug-in {plugin.user.short_name}"
        )
        plugin.under_way[key] = task
        task.add_done_callback(lambda _: plugin.under_way.pop(key, None))
        return task

    async def _requested(
        self, plugin: _Plugin, key: PluginInput, due: Mapping[str, int | None], landscape: Landscape
    ) -> None:
        """Request, check and keep a reply; whatever is wrong is counted, and never raised."""
        began, user = self._clock.monotonic(), plugin.user
        try:
            if user.calls is None:
                reply = _checked(await self._response(plugin, key, due), due)
            else:
                seeds = [landscape.seeds_by_name[name] for name in due]
                seconds = max(user.args.deadline_seconds, LONGEST_REPLY_SECONDS)
                called = await user.calls.about_seeds(key._asdict(), seeds, user.args.points, seconds)
                reply = _meant(_Reply(called.scores, called.rejected), due)
        except PluginReplyInvalid as error:
            user.failed("invalid", str(error))
            return
        except GardenbusError as error:
            user.failed("silent", error.message)
            return
        user.replied(self._clock.monotonic() - began)
        self._keep(plugin, key, due, reply)

    async def _response(self, plugin: _Plugin, key: PluginInput, due: Mapping[str, int | None]) -> bytes:
        """The response over NATS. Raises Transient."""
        body = _encode(
            {
                "apiVersion": PLUGIN_API_VERSION,
                "profile": self._profile.scheduler_name,
                "points": [each for each in plugin.user.args.points if each in ABOUT_CLASSES],
                "input": key._asdict(),
                "seeds": [{"name": name, "generation": generation} for name, generation in due.items()],
            }
        )
        seconds = max(plugin.user.args.deadline_seconds, LONGEST_REPLY_SECONDS)
        return await self._bus.request(self._subjects.plugin(plugin.user.short_name), body, timeout_seconds=seconds)

    def _keep(self, plugin: _Plugin, key: PluginInput, due: Mapping[str, int | None], reply: _Reply) -> None:
        now, points = self._clock.monotonic(), plugin.user.args.points
        seconds = plugin.user.args.valid_for_seconds if reply.valid_for_seconds is None else reply.valid_for_seconds
        rejected: Mapping[str, str] = reply.rejected if "Filter" in points else NO_REPLY.rejected
        about = {
            name: _AboutSeed(
                generation, reply.scores.get(name, reply.default), rejected.get(name, ""), now, max(seconds, 1.0)
            )
            for name, generation in due.items()
        }
        plugin.kept[key] = {**plugin.kept.get(key, {}), **about}
        self._publish(key)

    def _publish(self, key: PluginInput) -> None:
        """Have decisions read what is kept about a class."""
        self._replies[key] = ClassReplies(
            {
                plugin.user.name: PluginReply(
                    {name: each.points for name, each in about.items() if each.points},
                    {name: each.rejection for name, each in about.items() if each.rejection},
                )
                for plugin in self._plugins
                if (about := plugin.kept.get(key))
            }
        )


def _checked(response: bytes, due: Mapping[str, int | None]) -> _Reply:
    """Read a reply. Raises PluginReplyInvalid where any part of it cannot be meant: it is a failure as a whole."""
    if len(response) > MOST_BYTES:
        raise PluginReplyInvalid(f"its reply has {len(response)} bytes, {MOST_BYTES} are allowed")
    try:
        reply = _decode(response)
    except msgspec.MsgspecError as error:
        raise PluginReplyInvalid(f"its reply cannot be read: {error}") from error
    return _meant(reply, due)


def _meant(reply: _Reply, due: Mapping[str, int | None]) -> _Reply:
    """The same reply. Raises PluginReplyInvalid where it is out of range, or about something else."""
    for seed, points in (*reply.scores.items(), ("default", reply.default)):
        if not 0 <= points <= MOST_POINTS:
            raise PluginReplyInvalid(f"its score of {seed} is {points}, which is not from 0 to {MOST_POINTS}")
    unknown = sorted((reply.scores.keys() | reply.rejected.keys()) - due.keys())
    if unknown:
        raise PluginReplyInvalid(f"its reply is about {unknown[0]}, which it was not requested about")
    if any(not reason for reason in reply.rejected.values()):
        raise PluginReplyInvalid("it rejects a seed without a reason")
    return reply
