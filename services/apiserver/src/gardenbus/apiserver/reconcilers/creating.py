"""New objects of one batch, stored many in a call.

Only what goes smoothly is done here: one request about an object that is not there, admitted without any ado. Whatever
else happens (a refusal, a conflict, an object that came about meanwhile) leaves a request to be carried out by itself,
which ends it in its own words.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from gardenbus.apiserver.reconcilers.attempts import Contingent, Written
from gardenbus.apiserver.reconcilers.reads import Reads
from gardenbus.apiserver.reconcilers.writing import Writer
from gardenbus.common.errors import Conflict, Terminal
from gardenbus.common.ports import tracing
from gardenbus.common.ports.store import Creation, RequestOrigin, Store, Superseded
from gardenbus.common.resources.document import Document, StoredObject
from gardenbus.common.resources.keys import ObjectKey

TOGETHER = 50
"""Objects worked out before the store is told of them: as many as it takes in one call. It works on these while the
next are worked out."""


class Wanted(NamedTuple):
    """A manifest of an object that is not there."""

    key: ObjectKey
    document: Document
    user: str
    origin: RequestOrigin
    trace: str = ""


class Creator:
    """Stores new objects. One for all batches."""

    def __init__(self, store: Store, writer: Writer) -> None:
        self._store = store
        self._writer = writer

    async def create(self, wanted: Sequence[Wanted], reads: Reads) -> set[ObjectKey]:
        """Store what can be stored without any ado; answer which objects are done. Raises Unavailable."""
        storing: list[asyncio.Task[set[ObjectKey]]] = []
        try:
            for start in range(0, len(wanted), TOGETHER):
                ready = await self._worked_out(wanted[start : start + TOGETHER], reads)
                if ready:
                    storing.append(asyncio.create_task(self._store_all(ready, reads)))
                    await asyncio.sleep(0)
        finally:
            ended = await asyncio.gather(*storing, return_exceptions=True)
        done: set[ObjectKey] = set()
        for result in ended:
            if isinstance(result, BaseException):
                raise result
            done |= result
        return done

    async def _worked_out(self, wanted: Sequence[Wanted], reads: Reads) -> list[tuple[Wanted, Creation]]:
        ready: list[tuple[Wanted, Creation]] = []
        for one in wanted:
            try:
                creation = await self._writer.new_object(one.document, reads, key=one.key, user=one.user)
            except (Contingent, Terminal, Conflict):
                continue
            if creation is not None:
                ready.append((one, msgspec.structs.replace(creation, origin=one.origin, trace=one.trace)))
        return ready

    async def _store_all(self, ready: Sequence[tuple[Wanted, Creation]], reads: Reads) -> set[ObjectKey]:
        """Store them and do what each brings with it."""
        done: set[ObjectKey] = set()
        created = await self._store.create_many([creation for _, creation in ready])
        for (one, _), result in zip(ready, created, strict=True):
            if isinstance(result, StoredObject):
                reads.note(one.key, result)
                written = Written(one.key, "created", result)
                if not one.trace:
                    await self._writer.follow(written, reads, one.user)
                else:
                    with tracing.within(one.trace):
                        await self._writer.follow(written, reads, one.user)
            elif not isinstance(result, Superseded):
                continue
            done.add(one.key)
        return done
