"""Waits until objects have come to a goal, by the news of them."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing

from gardenbus.cli.client import ApiClient, refusal_of
from gardenbus.cli.commands.naming import Meant
from gardenbus.cli.documents import as_mapping
from gardenbus.cli.goals import Goal, failure_of
from gardenbus.cli.watching import Known, changes
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import ObjectKey

_NOT_FOUND = 404

Told = Callable[[ObjectKey], None]


def key_in(document: Document) -> ObjectKey:
    """The key of a manifest, or of a reference `{"kind", "namespace", "name"}`."""
    metadata = as_mapping(document.get("metadata")) or document
    return ObjectKey(str(document.get("kind")).lower(), metadata.get("namespace") or "", str(metadata.get("name")))


async def until(
    api: ApiClient, goals: Mapping[ObjectKey, Goal], timeout_seconds: float, told: Told
) -> Mapping[ObjectKey, Document | None]:
    """Wait for each object's goal and tell of it when it is reached; answer those left, with how they stand.

    A Failed operation ends the wait for its object. Raises Unavailable.
    """
    position = await api.bus.position(api.subjects.stream("OBJECTS"))
    waiting = Waiting(goals, told)
    for key in goals:
        waiting.look(key, await _now(api, key))
    if not waiting.keys:
        return waiting.left
    known = Known(waiting.meant, None, None)
    for key in waiting.keys:
        if (document := waiting.left[key]) is not None:
            known.note(key.kind, document)
    with contextlib.suppress(TimeoutError):
        async with (
            asyncio.timeout(timeout_seconds),
            aclosing(changes(api, known, waiting.meant, None, position.sequence)) as following,
        ):
            async for change in following:
                if change.key in waiting.keys:
                    waiting.look(change.key, None if change.verb == "deleted" else change.document)
                if not waiting.keys:
                    break
    return waiting.left


class Waiting:
    """Who has not come to the goal: `left` with how they stand, `keys` those that may yet."""

    def __init__(self, goals: Mapping[ObjectKey, Goal], told: Told) -> None:
        self._goals = goals
        self._told = told
        self.left: dict[ObjectKey, Document | None] = {}
        self.keys: set[ObjectKey] = set(goals)

    @property
    def meant(self) -> Sequence[Meant]:
        """The kinds to be followed."""
        return [Meant(kind, (), is_namespaced=True) for kind in sorted({key.kind for key in self.keys})]

    def look(self, key: ObjectKey, document: Document | None) -> None:
        """Take note of how an object stands now."""
        if self._goals[key].reached(document):
            self.left.pop(key, None)
            self.keys.discard(key)
            self._told(key)
            return
        self.left[key] = document
        if failure_of(document):
            self.keys.discard(key)


async def _now(api: ApiClient, key: ObjectKey) -> Document | None:
    answer = await api.answer(f"get.{key.tail}")
    if answer.ok:
        return answer.result
    if answer.error.get("code") == _NOT_FOUND:
        return None
    raise refusal_of(answer.error)
