"""Cache of the landscape, kept current by the OBJECTS stream."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Mapping
from contextlib import aclosing
from typing import Any

import msgspec
import structlog

from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.client.following import follow
from gardenbus.cli.client.summaries import SetSummary, ShootSummary, summarize_set, summarize_shoot
from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.decoded_seeds import decode_seed_row
from gardenbus.common.api.garden.rows import AutoscalerRow, SeedRow, autoscaler_row
from gardenbus.common.api.keys import Header, ObjectKey
from gardenbus.common.api.watches import WatchedKind
from gardenbus.common.errors import Transient
from gardenbus.common.ports.bus import FollowEvent, FollowRestarted, ReplayDone, StreamMessage

RETRY_SECONDS = 0.5

_decode = json_decoder(dict[str, object])

_Rows = tuple[dict[ObjectKey, Any], Callable[[bytes], Any]]

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class LandscapeCache:
    """Rows of shoots, seeds, sets of seeds and autoscalers (or `kinds` of them), by key.

    `current` is set once the replay is done, `changed` with each event.
    """

    def __init__(self, api: ApiClient, kinds: Collection[str] = ()) -> None:
        self._api = api
        self._subjects = api.subjects
        self.shoots: dict[ObjectKey, ShootSummary] = {}
        self.seeds: dict[ObjectKey, SeedRow] = {}
        self.sets: dict[ObjectKey, SetSummary] = {}
        self.autoscalers: dict[ObjectKey, AutoscalerRow] = {}
        rows: Mapping[str, _Rows] = {
            "shoot": (self.shoots, _row_by(summarize_shoot)),
            "seed": (self.seeds, decode_seed_row),
            "managedseedset": (self.sets, _row_by(summarize_set)),
            "seedautoscaler": (self.autoscalers, _row_by(autoscaler_row)),
        }
        self._rows: Mapping[str, _Rows] = {kind: rows[kind] for kind in kinds or rows}
        self.current = asyncio.Event()
        self.changed = asyncio.Event()

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
        self.changed.set()
        match event:
            case ReplayDone():
                self.current.set()
            case FollowRestarted():
                for rows, _ in self._rows.values():
                    rows.clear()
                self.current.clear()
            case StreamMessage() if event.marker is None:
                try:
                    self._note(event)
                except Exception as error:  # noqa: BLE001  whatever it holds, the messages behind it count
                    _log.warning("message.unreadable", subject=event.subject, reason=repr(error)[:300])
            case StreamMessage():
                pass

    def _note(self, message: StreamMessage) -> None:
        key = ObjectKey.from_tail(message.subject.removeprefix(f"{self._subjects.prefix}.changed."))
        rows, row_of = self._rows[key.kind]
        row = None if message.headers.get(Header.VERB) == "deleted" else row_of(message.body)
        if row is None:
            rows.pop(key, None)
        else:
            rows[key] = row


def _row_by(summarize: Callable[[Document], Any]) -> Callable[[bytes], Any]:
    """Rows of JSON; None for what is no JSON object."""

    def row_of(body: bytes) -> Any:
        try:
            document = _decode(body)
        except msgspec.MsgspecError:
            return None
        return summarize(document)

    return row_of
