"""Lists of what is only on the bus: Events, and the Leases that gardenlets renew."""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from gardenbus.apiserver.registry.loop_turn import LoopTurn
from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.keys import CLUSTER_SCOPE, PROBE_LEASE, Subjects
from gardenbus.common.api.list_selectors import ObjectPredicate
from gardenbus.common.api.names import NAME, PATH_SEGMENT
from gardenbus.common.ports.bus import Bus, ReplayDone, StreamMessage

_decode = json_decoder(dict[str, Any])


NEWEST_MESSAGES = 250
"""Messages at the end of EVENTS that a list of Events reads first, where its limit needs no more of them."""

FURTHER_BACK = 20
"""Factor by which it reads more next, and then all: with a selector there may be few among many."""


class EventPage(NamedTuple):
    """The newest Events, in the order of their last occurrence, and how many there are; None: more than these."""

    items: list[msgspec.Raw]
    total: int | None


class LeasePage(NamedTuple):
    """Leases in the order of their names; `last` is the name to go on after, None at the end of the list."""

    items: list[msgspec.Raw]
    last: str | None


class BusLists:
    """Reads lists from the streams EVENTS and LEASES."""

    def __init__(self, bus: Bus, subjects: Subjects, *, most_bytes: int) -> None:
        self._bus = bus
        self._subjects = subjects
        self._most_bytes = most_bytes

    async def events(
        self, namespace: str | None, matches: ObjectPredicate | None, limit: int, *, kind: str = "", name: str = ""
    ) -> EventPage:
        """The newest Events with the newest count of each, about any object or one of this kind and this name.

        `namespace` None means all, "" none.
        """
        scope = "*" if namespace is None else namespace or CLUSTER_SCOPE
        about = f"{kind if NAME.fullmatch(kind) else '*'}.{scope}.{name if PATH_SEGMENT.fullmatch(name) else '>'}"
        subject_filter = f"{self._subjects.prefix}.event.{about}"
        is_of_one = NAME.fullmatch(kind) and PATH_SEGMENT.fullmatch(name)  # there are few of those, wherever they are
        for after in () if is_of_one else await self._starts(limit):
            found = await self._found(subject_filter, matches, after)
            kept = self._within(found, limit)
            if len(kept) < len(found):
                return EventPage(kept[::-1], None)
        found = await self._found(subject_filter, matches, None)
        return EventPage(self._within(found, limit)[::-1], len(found))

    async def _starts(self, limit: int) -> list[int]:
        """Sequences of EVENTS behind which to look for the newest, before all of them are read."""
        last = (await self._bus.position(self._subjects.stream("EVENTS"))).sequence
        messages = max(NEWEST_MESSAGES, 2 * limit)
        return [last - back for back in (messages, FURTHER_BACK * messages) if back < last]

    async def _found(self, subject_filter: str, matches: ObjectPredicate | None, after: int | None) -> list[bytes]:
        """Events that occurred last behind a sequence, the newest first; of others no more is kept than a name."""
        newest: dict[str, bytes] = {}

        def note(message: StreamMessage) -> None:
            document = _object(message.body)
            identity = f"{message.subject} {section(document or {}, 'metadata').get('name') or ''}"
            newest.pop(identity, None)
            is_selected = document is not None and (matches is None or matches(document))
            newest[identity] = message.body if is_selected else b""

        await self._read("EVENTS", subject_filter, note, after_sequence=after)
        return [body for body in reversed(newest.values()) if body]

    async def leases(self, after: str, matches: ObjectPredicate | None, limit: int) -> LeasePage:
        """Leases whose seeds come after this name, without the heartbeat probe, which is of no gardenlet."""
        start = self._subjects.lease("")
        found: dict[str, bytes] = {}

        def note(message: StreamMessage) -> None:
            found[message.subject.removeprefix(start)] = message.body

        await self._read("LEASES", self._subjects.lease(">"), note, last_per_subject=True)
        names = sorted(
            name for name, body in found.items() if name > after and name != PROBE_LEASE and _is_selected(body, matches)
        )
        items = self._within([found[name] for name in names], limit)
        is_cut = len(items) < len(names)
        return LeasePage(items, (names[len(items) - 1] if items else after) if is_cut else None)

    async def _read(
        self,
        stream: str,
        subject_filter: str,
        note: Callable[[StreamMessage], None],
        *,
        after_sequence: int | None = None,
        last_per_subject: bool = False,
    ) -> None:
        turn = LoopTurn()
        async with self._bus.follow(
            self._subjects.stream(stream),
            [subject_filter],
            after_sequence=after_sequence,
            last_per_subject=last_per_subject,
        ) as follower:
            async for event in follower:
                if isinstance(event, ReplayDone):
                    break
                await turn.let_others_in()
                if isinstance(event, StreamMessage) and event.marker is None:
                    note(event)

    def _within(self, bodies: list[bytes], limit: int) -> list[msgspec.Raw]:
        """The first of them, as many as the limit and a response allow."""
        items: list[msgspec.Raw] = []
        size = 0
        for body in bodies[:limit]:
            size += len(body)
            if items and size > self._most_bytes:
                break
            items.append(msgspec.Raw(body))
        return items


def as_object(body: bytes) -> msgspec.Raw | None:
    """JSON to be passed on as it is; None for anything but a JSON object (any client may publish)."""
    return None if _object(body) is None else msgspec.Raw(body)


def _object(body: bytes) -> Document | None:
    try:
        return _decode(body)
    except msgspec.DecodeError:
        return None


def _is_selected(body: bytes, matches: ObjectPredicate | None) -> bool:
    document = _object(body)
    return document is not None and (matches is None or matches(document))
