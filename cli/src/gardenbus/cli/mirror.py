"""A picture of the landscape's shoots and seeds that keeps itself current: the last news of each, then what comes."""

import asyncio
import contextlib
from typing import TypeVar

import msgspec

from gardenbus.cli.rows import SeedRow, ShootRow, seed_row, shoot_row
from gardenbus.common.errors import Transient
from gardenbus.common.ports.bus import Bus, Delivered, FollowEvent, FollowRestarted, ReplayDone
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import Header, ObjectKey, Subjects

RETRY_SECONDS = 0.5

Row = TypeVar("Row", ShootRow, SeedRow)

_decode = msgspec.json.Decoder(dict[str, object]).decode


class Mirror:
    """Rows of all shoots and seeds, by key. `current` is set once the past has been read."""

    def __init__(self, bus: Bus, subjects: Subjects) -> None:
        self._bus = bus
        self._subjects = subjects
        self.shoots: dict[ObjectKey, ShootRow] = {}
        self.seeds: dict[ObjectKey, SeedRow] = {}
        self.current = asyncio.Event()

    async def run(self) -> None:
        """Follow for ever, through outages."""
        while True:
            with contextlib.suppress(Transient):
                await self._follow()
            await asyncio.sleep(RETRY_SECONDS)

    async def _follow(self) -> None:
        stream = self._subjects.stream("OBJECTS")
        filters = [self._subjects.changed_kind("shoot"), self._subjects.changed_kind("seed")]
        async with self._bus.follow(stream, filters, last_per_subject=True) as follower:
            async for event in follower:
                self.take(event)

    def take(self, event: FollowEvent) -> None:
        """Note one piece of news."""
        match event:
            case ReplayDone():
                self.current.set()
            case FollowRestarted():
                self.shoots.clear()
                self.seeds.clear()
                self.current.clear()
            case Delivered() if event.marker is None:
                self._note(event)
            case Delivered():
                pass

    def _note(self, news: Delivered) -> None:
        key = ObjectKey.from_tail(news.subject.removeprefix(f"{self._subjects.prefix}.changed."))
        is_gone = news.headers.get(Header.VERB) == "deleted"
        document = None if is_gone else _document(news.body)
        if key.kind == "shoot":
            _put(self.shoots, key, shoot_row(document) if document else None)
        elif key.kind == "seed":
            _put(self.seeds, key, seed_row(document) if document else None)


def _put(rows: dict[ObjectKey, Row], key: ObjectKey, row: Row | None) -> None:
    if row is None:
        rows.pop(key, None)
    else:
        rows[key] = row


def _document(body: bytes) -> Document | None:
    try:
        return _decode(body)
    except msgspec.MsgspecError:
        return None
