"""Permits of plug-ins for single binds, and binds that are reported to them.

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
from gardenbus.common.api.garden.scheduling_profiles import PLUGIN_API_VERSION
from gardenbus.common.api.keys import Subjects
from gardenbus.common.controller.cancellation import cancelled
from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.bus import Bus
from gardenbus.scheduler.watch.installed_plugins import PluginCalls, PluginReplyInvalid
from gardenbus.scheduler.watch.user_plugins import LONGEST_REPLY_SECONDS, MOST_BYTES, UserPlugin
from gardenbus.scheduling.plugin_replies import PluginInput
from gardenbus.scheduling.seed_candidates import SeedCandidate

LONGEST_DELAY_SECONDS = 86_400.0
MOST_BINDS = 1_000
"""Binds that wait to be reported to a plug-in; more of them are not."""


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


class PluginPermit(NamedTuple):
    """Permit of one bind, which is allowed without a reason; else it is decided on again after a time, or a backoff."""

    reason: str = ""
    after_seconds: float | None = None


ALLOWED = PluginPermit()


class _PermitReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    denied: Mapping[str, str] = {}
    later: Mapping[str, float] = {}


_decode = json_decoder(_PermitReply)
_encode = msgspec.json.Encoder().encode


class Permits:
    """The plug-ins of a profile that permit binds (Permit), or have them reported (PostBind)."""

    def __init__(self, plugins: Sequence[UserPlugin], profile: str, bus: Bus, subjects: Subjects) -> None:
        self._profile = profile
        self._bus = bus
        self._subjects = subjects
        self._permitting = [each for each in plugins if "Permit" in each.args.points]
        reported = [(each, each.calls) for each in plugins if "PostBind" in each.args.points and each.calls is not None]
        self._reported = [(plugin, calls, deque[WantedBind]()) for plugin, calls in reported]
        self._reporting: set[asyncio.Task[None]] = set()

    @property
    def are_needed(self) -> bool:
        """True where a bind waits for a plug-in."""
        return bool(self._permitting)

    @property
    def are_reported(self) -> bool:
        """True where binds are reported to a plug-in."""
        return bool(self._reported)

    async def close(self) -> None:
        """End the reports that are under way."""
        await cancelled(self._reporting)

    async def request(self, binds: Sequence[WantedBind]) -> Sequence[PluginPermit]:
        """The permits of binds of one class: the first plug-in in the profile's order that does not allow counts."""
        replies = await asyncio.gather(*(self._of_plugin(plugin, binds) for plugin in self._permitting))
        return [next((each for each in of_bind if each.reason), ALLOWED) for of_bind in zip(*replies, strict=True)]

    def report(self, binds: Sequence[WantedBind]) -> None:
        """Report binds to plug-ins, in the background and at most once."""
        for plugin, calls, waiting in self._reported:
            kept = binds[: MOST_BINDS - len(waiting)]
            if dropped := len(binds) - len(kept):
                plugin.metrics.plugin_errors.labels(plugin.short_name, "dropped").inc(dropped)
            is_under_way = bool(waiting)
            waiting.extend(kept)
            if waiting and not is_under_way:
                task = asyncio.create_task(_report(plugin, calls, waiting), name=f"binds for {plugin.short_name}")
                self._reporting.add(task)
                task.add_done_callback(self._reporting.discard)

    async def _of_plugin(self, plugin: UserPlugin, binds: Sequence[WantedBind]) -> Sequence[PluginPermit]:
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
        return [PluginPermit(plugin.missing)] * len(binds)

    async def _replied(self, plugin: UserPlugin, binds: Sequence[WantedBind]) -> Sequence[PluginPermit]:
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
            return _permits(plugin, binds, _PermitReply(denied, later))
        body = {
            "apiVersion": PLUGIN_API_VERSION,
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


def _permits(plugin: UserPlugin, binds: Sequence[WantedBind], reply: _PermitReply) -> Sequence[PluginPermit]:
    """Permits of a reply. Raises PluginReplyInvalid where it is out of range, or about something else."""
    unknown = sorted((reply.denied.keys() | reply.later.keys()) - {each.key for each in binds})
    if unknown:
        raise PluginReplyInvalid(f"its reply is about {unknown[0]}, which it was not requested about")
    if any(not reason for reason in reply.denied.values()):
        raise PluginReplyInvalid("it denies a shoot without a reason")
    for shoot, seconds in reply.later.items():
        if not 0 < seconds <= LONGEST_DELAY_SECONDS:
            raise PluginReplyInvalid(f"it has {shoot} decided on again in {seconds:g} s, which is not in a day")
    found: list[PluginPermit] = []
    for each in binds:
        if reason := reply.denied.get(each.key):
            found.append(PluginPermit(f"{plugin.short_name} denies seed {each.seed.name}: {reason}"))
        elif (seconds := reply.later.get(each.key)) is not None:
            what = f"{plugin.short_name} has the shoot wait {seconds:g} s for seed {each.seed.name}"
            found.append(PluginPermit(what, seconds))
        else:
            found.append(ALLOWED)
    return found


async def _report(plugin: UserPlugin, calls: PluginCalls, waiting: deque[WantedBind]) -> None:
    """Report to a plug-in what waits, a batch at a time; what fails is counted, and not reported again."""
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
