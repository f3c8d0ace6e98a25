"""Garbage collection: an owner is gone, so its dependents go, or forget it where other owners are left.

Work comes as `garden.queue.garbage._.<uid of the owner>`, from the same write that removed the owner (or that created
a dependent of an owner that was gone already).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, timedelta
from typing import Any, cast

import structlog

from gardenbus.apiserver.decide import admission
from gardenbus.common.errors import Conflict, Forbidden, NotFound, Unavailable
from gardenbus.common.ports.bus import Bus, Message, Work, WorkQueue
from gardenbus.common.ports.store import Store
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import ObjectKey, Subjects

_log = structlog.stdlib.get_logger()

CONTROLLER = "garbage"

ATTEMPTS = 20
LOOK_AGAIN_SECONDS = 60.0
"""When dependents that may not be deleted are looked at again; nothing waits for it."""

Later = Callable[[str, float], Awaitable[None]]
"""Has the work on a queue subject come back after some seconds; returns when that is certain."""


def later_on(bus: Bus, subjects: Subjects) -> Later:
    """Timers on the bus: the work stands on no queue meanwhile."""

    async def later(subject: str, seconds: float) -> None:
        now = await bus.server_now(subjects.stream("QUEUES"))
        due_at = (now + timedelta(seconds=seconds)).astimezone(UTC)
        headers = {
            "Nats-Schedule": f"@at {due_at.isoformat(timespec='milliseconds').removesuffix('+00:00')}Z",
            "Nats-Schedule-Target": subject,
        }
        await bus.publish_many([Message(subjects.later(subject), headers=headers)])

    return later


class Garbage:
    """Collects what the removal of an owner left behind."""

    def __init__(self, store: Store, queue: WorkQueue, later: Later) -> None:
        self._store = store
        self._queue = queue
        self._later = later

    async def handle(self, works: Sequence[Work]) -> None:
        """Take a batch of removed owners and acknowledge it. Raises Unavailable."""
        for work in works:
            uid = work.message.subject.rpartition(".")[2]
            if await self._insist(uid):
                await self._later(work.message.subject, LOOK_AGAIN_SECONDS)
        await self._queue.ack_many(works)

    async def _insist(self, uid: str) -> int:
        for _ in range(ATTEMPTS):
            try:
                return await self.collect(uid)
            except Conflict:
                continue
        raise Unavailable(f"the dependents of {uid} are changed by others all the time")

    async def collect(self, uid: str) -> int:
        """Treat every dependent of an owner that is gone; answer how many may not be deleted yet.

        Those are in use, or need a confirmation that nobody has given. Raises Conflict, Unavailable.
        """
        if await self._store.exists_uid(uid):
            return 0
        left = 0
        for key in await self._store.dependents(uid):
            try:
                await self._treat(key, uid)
            except Forbidden as error:
                left += 1
                _log.warning("dependent.kept", object=str(key), owner=uid, reason=error.message)
        return left

    async def _treat(self, key: ObjectKey, uid: str) -> None:
        stored = await self._store.get(key)
        if stored is None:
            return
        document = stored.document()
        others = [owner for owner in _owners(document) if owner.get("uid") != uid]
        living = [owner for owner in others if await self._store.exists_uid(str(owner.get("uid")))]
        try:
            if living:
                await self._store.update(stored, _owned_by(document, others))
            else:
                admission.confirm_deletion(document)
                await self._store.delete(stored, guards=admission.delete_guards(document))
        except NotFound:
            return
        _log.info("dependent.collected", object=str(key), owner=uid, deleted=not living)


def _owners(document: Document) -> Sequence[Mapping[str, Any]]:
    owners = cast("list[Any]", document["metadata"].get("ownerReferences") or [])
    return [cast("Document", owner) for owner in owners if isinstance(owner, dict)]


def _owned_by(document: Document, owners: Sequence[Mapping[str, Any]]) -> Document:
    metadata = {name: value for name, value in document["metadata"].items() if name != "ownerReferences"}
    return {**document, "metadata": {**metadata, "ownerReferences": list(owners)}}
