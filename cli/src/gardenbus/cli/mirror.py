"""A picture of the landscape that keeps itself current: the last news of each object, then what comes."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from gardenbus.cli.rows import (
    AutoscalerRow,
    SeedRow,
    SetRow,
    ShootRow,
    autoscaler_row,
    seed_row,
    set_row,
    shoot_row,
)
from gardenbus.common.errors import Transient
from gardenbus.common.ports.bus import Bus, Delivered, FollowEvent, FollowRestarted, ReplayDone
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import Header, ObjectKey, Subjects

RETRY_SECONDS = 0.5

_decode = msgspec.json.Decoder(dict[str, object]).decode


class Mirror:
    """Rows of shoots, seeds, sets of seeds and autoscalers, by key. `current` is set once the past has been read."""

    def __init__(self, bus: Bus, subjects: Subjects) -> None:
        self._bus = bus
        self._subjects = subjects
        self.shoots: dict[ObjectKey, ShootRow] = {}
        self.seeds: dict[ObjectKey, SeedRow] = {}
        self.sets: dict[ObjectKey, SetRow] = {}
        self.autoscalers: dict[ObjectKey, AutoscalerRow] = {}
        self._rows: Mapping[str, tuple[dict[ObjectKey, Any], Callable[[Document], Any]]] = {
            "shoot": (self.shoots, shoot_row),
            "seed": (self.seeds, seed_row),
            "managedseedset": (self.sets, set_row),
            "seedautoscaler": (self.autoscalers, autoscaler_row),
        }
        self.current = asyncio.Event()

    async def run(self) -> None:
        """Follow for ever, through outages."""
        while True:
            with contextlib.suppress(Transient):
                await self._follow()
            await asyncio.sleep(RETRY_SECONDS)

    async def _follow(self) -> None:
        stream = self._subjects.stream("OBJECTS")
        filters = [self._subjects.changed_kind(kind) for kind in self._rows]
        async with self._bus.follow(stream, filters, last_per_subject=True) as follower:
            async for event in follower:
                self.take(event)

    def take(self, event: FollowEvent) -> None:
        """Note one piece of news."""
        match event:
            case ReplayDone():
                self.current.set()
            case FollowRestarted():
                for rows, _ in self._rows.values():
                    rows.clear()
                self.current.clear()
            case Delivered() if event.marker is None:
                self._note(event)
            case Delivered():
                pass

    def _note(self, news: Delivered) -> None:
        key = ObjectKey.from_tail(news.subject.removeprefix(f"{self._subjects.prefix}.changed."))
        is_gone = news.headers.get(Header.VERB) == "deleted"
        document = None if is_gone else _document(news.body)
        rows, row_of = self._rows[key.kind]
        if document is None:
            rows.pop(key, None)
        else:
            rows[key] = row_of(document)


def _document(body: bytes) -> Document | None:
    try:
        return _decode(body)
    except msgspec.MsgspecError:
        return None
