"""Deletes what is in a namespace, stage by stage.

Each deletion holds only while the namespace is the one that was read: a replica that was held up deletes nothing in a
namespace of the same name that was made since.
"""

import asyncio
from collections.abc import Sequence

import structlog

from gardenbus.common.api.document import StoredObject
from gardenbus.common.controller.writes import version_precondition
from gardenbus.common.errors import NotFound
from gardenbus.common.ports.store import Store
from gardenbus.controllermanager import metrics
from gardenbus.controllermanager.domain.projects import stages_of

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_COUNT = "objects."
"""Of a census: what begins so is the number of objects of a kind."""

CONCURRENCY = 50
"""Deletions that are on their way at once."""


class NamespaceContents:
    """Deletes the contents of namespaces."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def delete(self, namespace: StoredObject) -> int:
        """Delete what may go now; returns how many of it are still there, held by finalizers. 0: it is empty.

        Raises Conflict when the namespace has changed since it was read, Unavailable.
        """
        census = await self._store.census()
        kinds = [name.removeprefix(_COUNT) for name, count in census.items() if name.startswith(_COUNT) and count]
        for stage in stages_of(kinds):
            if remaining := await self._delete_stage(namespace, stage):
                return remaining
        return 0

    async def _delete_stage(self, namespace: StoredObject, kinds: Sequence[str]) -> int:
        remaining = 0
        for kind in kinds:
            token: str | None = None
            while True:
                page = await self._store.list_page(kind, namespace.key.name, continue_token=token)
                for start in range(0, len(page.objects), CONCURRENCY):
                    some = page.objects[start : start + CONCURRENCY]
                    remaining += sum(await asyncio.gather(*(self._delete_one(each, namespace) for each in some)))
                if (token := page.continue_token) is None:
                    break
        return remaining

    async def _delete_one(self, stored: StoredObject, namespace: StoredObject) -> bool:
        """Delete one object; whether it is still there."""
        if stored.is_deleting:
            return True
        guard = version_precondition(namespace)
        try:
            left = await self._store.delete(stored, preconditions=(guard,))
        except NotFound:
            return False
        metrics.CONTENTS_DELETED.inc()
        _log.info("content.deleted", object=str(stored.key), namespace=namespace.key.name)
        return left is not None
