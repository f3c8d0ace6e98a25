"""Permits of plug-ins for single binds, and what plug-ins are told of binds.

    decided ──► request for each class ──► allowed: bound
                                   │  ├──► denied: unschedulable, tried again with backoff
                                   │  └──► later: the same, tried again after the seconds that it says
                                   └─────► no reply in time, or one that cannot be meant: `onError` of the plug-in

Nothing is held meanwhile: the bind takes what is left by then, and is fenced as any other.
"""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import Subjects
from gardenbus.common.controller.cancellation import cancelled
from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.bus import Bus
from gardenbus.scheduler.watch.installed_plugins import PluginCalls, PluginReplyInvalid
from gardenbus.scheduler.watch.user_plugins import API_VERSION, LONGEST_REPLY_SECONDS, MOST_BYTES, UserPlugin
from gardenbus.scheduling.plugin_replies import PluginInput
from gardenbus.scheduling.seed_candidates import SeedCandidate

LONGEST_DELAY_SECONDS = 86_400.0
MOST_BINDS = 1_000
"""Binds that a plug-in has not been told of yet; of more it is not told."""


class WantedBind(NamedTuple):
    """A shoot, by what plug-ins read of it, and the seed that it is decided for."""

    namespace: str
    name: str
    uid: str
    of_class: PluginInput
    seed: SeedCandidate

    @property
    def key(self) -> str:
        """The shoot as replies name it."""
        return f"{self.namespace}/{self.name}"

    @property
    def input(self) -> Document:
        """The shoot as plug-ins get it."""
        return {**self.of_class._asdict(), "name": self.name, "uid": self.uid}


class Permit(NamedTuple):
    """Permit of one bind, which is allowed without a reason; else it is decided on again after a time, or a backoff."""

    reason: str = ""
    after_seconds: float | None = None


ALLOWED = Permit()


class _Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    denied: Mapping[str, str] = {}
    later: Mapping[str, float] = {}


_decode = json_decoder(_Reply)
_encode = msgspec.json.Encoder().encode


class Permits:
    """The plug-ins of a profile that permit binds (Permit), or are told of them (PostBind)."""

    def __init__(self, plugins: Sequence[UserPlugin], profile: str, bus: Bus, subjects: Subjects) -> None:
        self._profile = profile
        self._bus = bus
        self._subjects = subjects
        self._permitting = [each for each in plugins if "Permit" in each.args.points]
        told = [(each, each.calls) for each in plugins if "PostBind" in each.args.points and each.calls is not None]
        self._told = [(plugin, calls, deque[WantedBind]()) for plugin, calls in told]
        self._telling: set[asyncio.Task[None]] = set()

    @property
    def are_needed(self) -> bool:
        """True where a bind waits for a plug-in."""
        return bool(self._permitting)

    @property
    def are_told(self) -> bool:
        """True where a plug-in is told of binds."""
        return bool(self._told)

    async def close(self) -> None:
        """End what plug-ins are being told."""
        await cancelled(self._telling)

    async def request(self, binds: Sequence[WantedBind]) -> Sequence[Permit]:
        """The permits of binds of one class: the first plug-in in the profile's order that does not allow counts."""
        replies = await asyncio.gather(*(self._of_plugin(plugin, binds) for plugin in self._permitting))
        return [next((each for each in of_bind if each.reason), ALLOWED) for of_bind in zip(*replies, strict=True)]

    def tell(self, binds: Sequence[WantedBind]) -> None:
        """Have plug-ins be told of binds, in the background and at most once."""
        for plugin, calls, waiting in self._told:
            kept = binds[: MOST_BINDS - len(waiting)]
            if dropped := len(binds) - len(kept):
                plugin.metrics.plugin_errors.labels(plugin.short_name, "dropped").inc(dropped)
            is_under_way = bool(waiting)
            waiting.extend(kept)
            if waiting and not is_under_way:
                task = asyncio.create_task(_tell(plugin, calls, waiting), name=f"binds for {plugin.short_name}")
                self._telling.add(task)
                task.add_done_callback(self._telling.discard)

    async def _of_plugin(self, plugin: UserPlugin, binds: Sequence[WantedBind]) -> Sequence[Permit]:
        began = plugin.clock.monotonic()
        if not plugin.is_left_alone:
            try:
                found = await self._replied(plugin, binds)
            except PluginReplyInvalid as error:
                plugin.failed("invalid", str(error))
            except GardenbusError as error:
                plugin.failed("silent", error.message)
            else:
                plugin.replied(plugin.clock.monotonic() - began)
                return found
        if plugin.args.on_error == "Ignore":
            return [ALLOWED] * len(binds)
        problem = plugin.problem or "in time"
        return [Permit(f"the plug-in {plugin.short_name} is required and has not replied: {problem}")] * len(binds)

    async def _replied(self, plugin: UserPlugin, binds: Sequence[WantedBind]) -> Sequence[Permit]:
        """The permits of one plug-in. Raises Transient, and PluginReplyInvalid."""
        seconds = plugin.args.deadline_seconds
        if plugin.calls is not None:
            results = await plugin.calls.permits([(each.input, each.seed) for each in binds], seconds)
            denied = {each.key: result for each, result in zip(binds, results, strict=True) if isinstance(result, str)}
            later = {
                each.key: float(result)
                for each, result in zip(binds, results, strict=True)
                if isinstance(result, int | float)
            }
            return _permits(plugin, binds, _Reply(denied, later))
        body = {
            "apiVersion": API_VERSION,
            "profile": self._profile,
            "points": ["Permit"],
            "input": binds[0].of_class._asdict(),
            "shoots": [
                {
                    "namespace": each.namespace,
                    "name": each.name,
                    "uid": each.uid,
                    "seed": {"name": each.seed.name, "generation": each.seed.scheduling_generation},
                }
                for each in binds
            ],
        }
        subject = self._subjects.plugin(plugin.short_name)
        response = await self._bus.request(subject, _encode(body), timeout_seconds=seconds)
        if len(response) > MOST_BYTES:
            raise PluginReplyInvalid(f"its reply has {len(response)} bytes, {MOST_BYTES} are allowed")
        try:
            reply = _decode(response)
        except msgspec.MsgspecError as error:
            raise PluginReplyInvalid(f"its reply cannot be read: {error}") from error
        return _permits(plugin, binds, reply)


def _permits(plugin: UserPlugin, binds: Sequence[WantedBind], reply: _Reply) -> Sequence[Permit]:
    """Permits of a reply. Raises PluginReplyInvalid where it is out of range, or about something else."""
    unknown = sorted((reply.denied.keys() | reply.later.keys()) - {each.key for each in binds})
    if unknown:
        raise PluginReplyInvalid(f"its reply is about {unknown[0]}, which it was not requested about")
    if any(not reason for reason in reply.denied.values()):
        raise PluginReplyInvalid("it denies a shoot without a reason")
    for shoot, seconds in reply.later.items():
        if not 0 < seconds <= LONGEST_DELAY_SECONDS:
            raise PluginReplyInvalid(f"it has {shoot} decided on again in {seconds:g} s, which is not in a day")
    found: list[Permit] = []
    for each in binds:
        if reason := reply.denied.get(each.key):
            found.append(Permit(f"{plugin.short_name} denies seed {each.seed.name}: {reason}"))
        elif (seconds := reply.later.get(each.key)) is not None:
            what = f"{plugin.short_name} has the shoot wait {seconds:g} s for seed {each.seed.name}"
            found.append(Permit(what, seconds))
        else:
            found.append(ALLOWED)
    return found


async def _tell(plugin: UserPlugin, calls: PluginCalls, waiting: deque[WantedBind]) -> None:
    """Tell a plug-in of what waits, a batch at a time; what fails is counted, and not told again."""
    while waiting:
        batch = list(waiting)
        try:
            await calls.bound([(each.input, each.seed) for each in batch], LONGEST_REPLY_SECONDS)
        except PluginReplyInvalid as error:
            plugin.failed("invalid", str(error))
        except GardenbusError as error:
            plugin.failed("silent", error.message)
        for _ in batch:
            waiting.popleft()
