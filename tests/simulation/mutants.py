"""Mutants: the product without one of its precautions, each of which was missing once or must never be.

Each replaces one function for the time of some schedules. The simulation has to find every one of them.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from unittest.mock import patch

import msgspec

from gardenbus.apiserver.messages.durable_requests import DurableRequestHandler
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.batch_consumer import BatchConsumer
from gardenbus.common.controller.dead_letter import DeadLetter
from gardenbus.common.controller.informer import Informer
from gardenbus.common.controller.stream_incarnation import StreamIncarnation
from gardenbus.common.ports.bus import QueueMessage, StreamPosition
from gardenbus.common.ports.store import UnknownObject, Usage
from gardenbus.common.ports.stream_history import StreamEntry
from gardenbus.relay.ports.outbox import Leadership
from gardenbus.relay.relay import Relay
from gardenbus.scheduler.controllers.shoots import ShootSchedulingReconciler
from tests.simulation.connections import NATS, REDIS
from tests.support.memory.bus import MemoryBus
from tests.support.memory.connection import PREFIX
from tests.support.memory.outbox import MemoryOutbox
from tests.support.memory.store import MemoryStore
from tests.support.mutants import Mutant, changed_functions

_reannounce = MemoryStore.reannounce_object
_reject_poison = DeadLetter.reject_poison
_handle_batch = ShootSchedulingReconciler.handle_batch
_publish_batch = MemoryBus.publish_batch
_head = MemoryOutbox.head
_lead = MemoryOutbox.lead
_recover = Relay._recover  # pyright: ignore[reportPrivateUsage]
"""The functions as they are: mutants add to them, or take away."""

# ---------------------------------------------------------------------------------------------- restores


async def _remove_the_unknown(
    self: MemoryStore,
    key: ObjectKey,
    seed: str,
    uid: str = "",
    unknown: UnknownObject | None = None,
    *,
    is_own: bool = True,
) -> bool:
    if not await _reannounce(self, key, seed, uid, unknown, is_own=is_own):
        entry = {"k": key.stored, "v": self.state.version, "u": uid, "a": "deleted", "b": "1", "l": seed, "g": 0}
        fields = (part for field in entry.items() for part in field)
        self.redis.data.execute("XADD", f"{PREFIX}:outbox", "*", *fields)
    return True


async def _of_one_incarnation(self: StreamIncarnation, messages: Sequence[QueueMessage]) -> list[int]:
    return [1] * len(messages)


async def _is_never_lost(self: StreamIncarnation, entry: StreamEntry) -> bool:
    return False


async def _read_behind_the_sequence(self: Relay, recorded: Mapping[str, StreamPosition], now: StreamPosition) -> int:
    last = recorded.get("OBJECTS")
    return last.sequence if last is not None and last.created == now.created else 0


async def _compare_the_end(self: StreamIncarnation) -> None:
    await self.position()
    self._compared = self._connections  # pyright: ignore[reportPrivateUsage]


async def _lead_over_lives(self: MemoryOutbox, ttl_seconds: float) -> Leadership:
    return msgspec.structs.replace(await _lead(self, ttl_seconds), is_continued=True)


async def _recover_from_what_was(self: Relay) -> None:
    positions = await self._outbox.positions()  # pyright: ignore[reportPrivateUsage]
    with patch.object(self._outbox, "positions", lambda: _nothing_but(positions)):  # pyright: ignore[reportPrivateUsage]
        await _recover(self)


async def _nothing_but(value: Any) -> Any:
    return value


async def _repeat_nothing(self: Relay, recorded: Any, now: Any) -> None:
    return


async def _note_nothing(self: Relay, version: int) -> None:
    return


def _ignore_version(self: Informer, version: int) -> None:
    return


def _follows_when_higher(self: Usage, version: int) -> bool:
    return version <= self.version


# ---------------------------------------------------------------------------------------------- poison


async def _split_and_reject(self: DeadLetter, message: QueueMessage) -> None:
    _namespace, _name = message.message.subject.split(".")[4:6]
    await _reject_poison(self, message)


async def _split_and_handle(self: ShootSchedulingReconciler, messages: Sequence[QueueMessage]) -> None:
    for message in messages:
        _namespace, _name = message.message.subject.split(".")[4:6]
    await _handle_batch(self, messages)


async def _handle_once(
    self: BatchConsumer, messages: Sequence[QueueMessage], handle: Callable[[Any], Awaitable[None]]
) -> None:
    await handle(messages)


# ---------------------------------------------------------------------------------------------- order and atomicity


async def _acknowledge_first(self: ShootSchedulingReconciler, messages: Sequence[QueueMessage]) -> None:
    await self._queue.ack_many(messages)  # pyright: ignore[reportPrivateUsage]
    await _handle_batch(self, messages)


async def _publish_anywhere(
    self: MemoryBus, stream: str, messages: Any, *, expected_last_sequence: int, whole: bool = False
) -> int:
    last = self.server.stream(stream).last_sequence
    return await _publish_batch(self, stream, messages, expected_last_sequence=last, whole=whole)


async def _trim_at_once(self: MemoryOutbox, limit: int, after: str | None = None) -> Any:
    page = await _head(self, limit, after)
    if page.entries:
        await self.trim(page.entries[-1].entry, {})
    return page


async def _decide_at_once(self: DurableRequestHandler, queued: QueueMessage, deadline: float) -> bool:
    return True


MUTANTS: dict[str, Mutant] = {
    "streams that went back are not noticed": Mutant([(Relay, "_repeat", _repeat_nothing)], (NATS,)),
    "a poison message raises out of its rejection": Mutant(
        [
            (ShootSchedulingReconciler, "handle_batch", _split_and_handle),
            (DeadLetter, "reject_poison", _split_and_reject),
        ]
    ),
    "what a handler raises ends its consumer": Mutant([(BatchConsumer, "_retry_while_unavailable", _handle_once)]),
    "the outbox is trimmed before it is announced": Mutant([(MemoryOutbox, "head", _trim_at_once)]),
    "a bind does not check the seed": Mutant(
        [
            changed_functions(
                (
                    "  local rejection = bind_rejection(P, item, item.seed, item.gate, object, object.rq)\n",
                    "  local rejection\n",
                )
            )
        ]
    ),
    "older requests override newer ones": Mutant(
        [changed_functions(("    if taken ~= '' and op.origin <= taken then return {'superseded', taken} end\n", ""))]
    ),
    "a deletion does not wait for the creation": Mutant(
        [(DurableRequestHandler, "_wait_for_earlier", _decide_at_once)]
    ),
    "a cluster event after the mark is missed": Mutant(
        [changed_functions(("function activate_schedulers(P)\n", "function activate_schedulers(P)\n  P = 'nobody'\n"))]
    ),
    "incarnations of streams are ignored": Mutant([(StreamIncarnation, "of", _of_one_incarnation)], (NATS,)),
    "what was fetched from a lost stream passes for the present": Mutant(
        [(StreamIncarnation, "_is_lost", _is_never_lost)], (NATS,)
    ),
    "a tombstone for what nobody remembers": Mutant(
        [(MemoryStore, "reannounce_object", _remove_the_unknown)], (REDIS, NATS)
    ),
    "news of an older store are announced": Mutant(
        [
            changed_functions(
                ("  return holds_lead(P, leader) and led[P .. ' ' .. leader] == opening_of(P)\n", "  return true\n")
            )
        ],
        (REDIS,),
    ),
    "reads of a closed store are answered": Mutant(
        [
            changed_functions(
                (
                    "  if not is_open(P) then return reject_newer(P)",
                    "  if not is_open(P) and outbox_max then return reject_newer(P)",
                )
            )
        ],
        (REDIS,),
    ),
    "a stream that grew past what it had lost is not compared": Mutant(
        [(StreamIncarnation, "_compare", _compare_the_end)], (NATS,)
    ),
    "a store that went back trusts the sequences of a bus that did": Mutant(
        [(Relay, "_read_before", _read_behind_the_sequence)], (REDIS, NATS)
    ),
    "usage of a lost history passes for the present": Mutant([(Usage, "follows", _follows_when_higher)], (REDIS,)),
}
"""Each is found within a few hundred schedules."""

RARE: dict[str, Mutant] = {
    "a relay goes on with what it read of an older store": Mutant(
        [(MemoryOutbox, "lead", _lead_over_lives), (Relay, "_recover", _recover_from_what_was)], (REDIS,)
    ),
    "a restore is left half done": Mutant([(Relay, "_note_restored", _note_nothing)], (REDIS,)),
    "work is acknowledged before it is done": Mutant([(ShootSchedulingReconciler, "handle_batch", _acknowledge_first)]),
    "informers do not notice an older store": Mutant([(Informer, "_note_version", _ignore_version)], (REDIS,)),
    "announcements go wherever the stream stands": Mutant([(MemoryBus, "publish_batch", _publish_anywhere)]),
    "a bind does not check the shoot's seed": Mutant(
        [
            changed_functions(
                (
                    "  if object.seed ~= '' then return 'scheduled' end\n",
                    "  if object.seed == item.seed then return 'scheduled' end\n",
                ),
                (
                    "  if tonumber(object.gen) ~= item.gen then return 'changed' end\n",
                    "  if object.seed == '' and tonumber(object.gen) ~= item.gen then return 'changed' end\n",
                ),
            )
        ]
    ),
    "a cluster event before the mark is missed": Mutant(
        [
            changed_functions(
                (
                    "  if unblock_objects > item.seen_objects or unblock_usage ~= item.seen_usage\n",
                    "  if false\n",
                )
            )
        ]
    ),
}
"""These need coincidences: thousands of schedules."""
