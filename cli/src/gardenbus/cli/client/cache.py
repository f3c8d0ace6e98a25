"""Cache of the landscape, kept current by the OBJECTS stream."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Mapping
from contextlib import aclosing
from typing import Any

import msgspec

from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.client.following import follow
from gardenbus.cli.output.summaries import SetSummary, ShootSummary, summarize_set, summarize_shoot
from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.rows import AutoscalerRow, SeedRow, autoscaler_row, seed_row
from gardenbus.common.api.keys import Header, ObjectKey
from gardenbus.common.api.watches import WatchedKind
from gardenbus.common.controller.unreadable import skip_unreadable
from gardenbus.common.errors import Transient
from gardenbus.common.ports.bus import FollowEvent, FollowRestarted, ReplayDone, StreamMessage

RETRY_SECONDS = 0.5

_decode = json_decoder(dict[str, object])


_Rows = tuple[dict[ObjectKey, Any], Callable[[Document], Any]]


class LandscapeCache:
    """Rows of shoots, seeds, sets of seeds and autoscalers (or `kinds` of them), by key.

    `current` is set once the replay is done.
    """

    def __init__(self, api: ApiClient, kinds: Collection[str] = ()) -> None:
        self._api = api
        self._subjects = api.subjects
        self.shoots: dict[ObjectKey, ShootSummary] = {}
        self.seeds: dict[ObjectKey, SeedRow] = {}
        self.sets: dict[ObjectKey, SetSummary] = {}
        self.autoscalers: dict[ObjectKey, AutoscalerRow] = {}
        rows: Mapping[str, _Rows] = {
            "shoot": (self.shoots, summarize_shoot),
            "seed": (self.seeds, seed_row),
            "managedseedset": (self.sets, summarize_set),
            "seedautoscaler": (self.autoscalers, autoscaler_row),
        }
        self._rows: Mapping[str, _Rows] = {kind: rows[kind] for kind in kinds or rows}
        self.current = asyncio.Event()

    async def run(self) -> None:
        """Follow for ever, through outages."""
        while True:
            with contextlib.suppress(Transient):
                await self._follow()
            await asyncio.sleep(RETRY_SECONDS)

    async def _follow(self) -> None:
        scopes = [WatchedKind(kind) for kind in self._rows]
        async with aclosing(follow(self._api, scopes, None)) as following:
            async for event in following:
                self.on_event(event)

    def on_event(self, event: FollowEvent) -> None:
        """Apply one event."""
        match event:
            case ReplayDone():
                self.current.set()
            case FollowRestarted():
                for rows, _ in self._rows.values():
                    rows.clear()
                self.current.clear()
            case StreamMessage() if event.marker is None:
                with skip_unreadable(event):
                    self._note(event)
            case StreamMessage():
                pass

    def _note(self, message: StreamMessage) -> None:
        key = ObjectKey.from_tail(message.subject.removeprefix(f"{self._subjects.prefix}.changed."))
        is_gone = message.headers.get(Header.VERB) == "deleted"
        document = None if is_gone else _document(message.body)
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
