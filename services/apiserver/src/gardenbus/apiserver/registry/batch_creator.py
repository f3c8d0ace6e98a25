"""New objects of one batch, stored many in a call.

Only the simple case is handled here: one request for an object that does not exist, admitted without any problem.
Everything else (a rejection, a conflict, an object created concurrently) leaves the request to the writer, which
reports it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from gardenbus.apiserver.domain.related_objects import RelatedQuery
from gardenbus.apiserver.registry.loop_turn import LoopTurn
from gardenbus.apiserver.registry.read_cache import ReadCache
from gardenbus.apiserver.registry.retry_on_conflict import UnmetDependency, WriteResult
from gardenbus.apiserver.registry.writer import ANY_CHANGE, ChangeChecks, PreparedShoot, Writer
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.field_validation import FieldValidation
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Conflict, Terminal
from gardenbus.common.ports import tracing
from gardenbus.common.ports.store import Creation, RequestOrigin, Store, Superseded

OBJECTS_PER_CALL = 50
"""Objects admitted before the store is called: its limit for one call. It works on these while the next are admitted.
"""


class NewObject(NamedTuple):
    """A manifest of an object that is not there."""

    key: ObjectKey
    document: Document
    user: str
    origin: RequestOrigin
    validation: FieldValidation
    trace: str = ""
    checks: ChangeChecks = ANY_CHANGE
    queries: Sequence[RelatedQuery] | None = None
    """Queries of admission for the manifest as it was sent, where they are known already."""
    prepared: PreparedShoot | None = None


class _AdmittedCreation(NamedTuple):
    """A new object with what is to be stored, and `WriteResult.notices` of its manifest."""

    new: NewObject
    creation: Creation
    notices: tuple[str, ...]


class BatchCreator:
    """Stores new objects. One for all batches."""

    def __init__(self, store: Store, writer: Writer) -> None:
        self._store = store
        self._writer = writer

    async def create(self, new_objects: Sequence[NewObject], reads: ReadCache) -> Mapping[ObjectKey, WriteResult]:
        """Store what can be stored at once; returns the results of the objects that are done. Raises Unavailable."""
        storing: list[asyncio.Task[dict[ObjectKey, WriteResult]]] = []
        try:
            for start in range(0, len(new_objects), OBJECTS_PER_CALL):
                ready = await self._admitted(new_objects[start : start + OBJECTS_PER_CALL], reads)
                if ready:
                    storing.append(asyncio.create_task(self._store_all(ready, reads)))
                    await asyncio.sleep(0)
        finally:
            ended = await asyncio.gather(*storing, return_exceptions=True)
        done: dict[ObjectKey, WriteResult] = {}
        for result in ended:
            if isinstance(result, BaseException):
                raise result
            done |= result
        return done

    async def _admitted(self, new_objects: Sequence[NewObject], reads: ReadCache) -> list[_AdmittedCreation]:
        ready: list[_AdmittedCreation] = []
        turn = LoopTurn()
        for one in new_objects:
            await turn.let_others_in()
            try:
                admitted = await self._writer.new_object(
                    one.document,
                    reads,
                    key=one.key,
                    user=one.user,
                    validation=one.validation,
                    checks=one.checks,
                    queries=one.queries,
                    prepared=one.prepared,
                )
            except (UnmetDependency, Terminal, Conflict):
                continue
            if admitted is not None:
                creation = msgspec.structs.replace(admitted.creation, origin=one.origin, trace=one.trace)
                ready.append(_AdmittedCreation(one, creation, admitted.notices))
        return ready

    async def _store_all(self, ready: Sequence[_AdmittedCreation], reads: ReadCache) -> dict[ObjectKey, WriteResult]:
        """Store them and do what each brings with it."""
        done: dict[ObjectKey, WriteResult] = {}
        created = await self._store.create_many([admitted.creation for admitted in ready])
        for (one, _, notices), result in zip(ready, created, strict=True):
            written = WriteResult(one.key, "superseded", None)
            if isinstance(result, StoredObject):
                reads.record(one.key, result)
                written = WriteResult(one.key, "created", result, notices, notices)
                if not one.trace:
                    await self._writer.follow_up(written, reads, one.user)
                else:
                    with tracing.within(one.trace):
                        await self._writer.follow_up(written, reads, one.user)
            elif not isinstance(result, Superseded):
                continue
            done[one.key] = written
        return done
