"""Objects as they change: what a list began with, carried on from the OBJECTS stream."""

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Literal, NamedTuple

import msgspec

from gardenbus.cli.client import ApiClient
from gardenbus.cli.commands.naming import Meant
from gardenbus.cli.documents import as_mapping
from gardenbus.cli.output import errors
from gardenbus.common.ports.bus import Delivered, FollowRestarted
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import Header, ObjectKey

Chooses = Callable[[Document], bool]


class Change(NamedTuple):
    """One change. `document` is the object after it, or before it was deleted (as far as it was known)."""

    verb: Literal["added", "modified", "deleted"]
    key: ObjectKey
    document: Document


class Known:
    """What was seen last of each object, and what a piece of news changes in it. Pure."""

    def __init__(self, wanted: Sequence[Meant], namespace: str | None, chooses: Chooses | None) -> None:
        self._wanted = {meant.kind: meant for meant in wanted}
        self._namespace = namespace
        self._chooses = chooses
        self._seen: dict[ObjectKey, Document] = {}

    def note(self, kind: str, document: Document) -> None:
        """Remember an object that a list showed."""
        metadata = as_mapping(document.get("metadata"))
        self._seen[ObjectKey(kind, metadata.get("namespace") or "", str(metadata.get("name")))] = document

    def is_meant(self, key: ObjectKey) -> bool:
        """Whether an object is one of those asked for."""
        wanted = self._wanted.get(key.kind)
        if wanted is None or (
            self._namespace is not None and wanted.is_namespaced and key.namespace != self._namespace
        ):
            return False
        return not wanted.names or key.name in wanted.names or f"{key.namespace}/{key.name}" in wanted.names

    def change(self, key: ObjectKey, document: Document | None) -> Change | None:
        """What a new state (None: it is gone) comes to; None when it is old, or was and is of no interest."""
        before = self._seen.get(key)
        if document is not None and before is not None and _version(document) <= _version(before):
            return None
        if document is None or (self._chooses is not None and not self._chooses(document)):
            if before is None:
                return None
            del self._seen[key]
            return Change("deleted", key, before)
        self._seen[key] = document
        return Change("modified" if before is not None else "added", key, document)


def _version(document: Document) -> int:
    version = as_mapping(document.get("metadata")).get("resourceVersion")
    return int(version) if isinstance(version, str) and version.isdecimal() else 0


async def changes(
    api: ApiClient, known: Known, wanted: Sequence[Meant], namespace: str | None, after: int
) -> AsyncGenerator[Change]:
    """Changes after a sequence of the OBJECTS stream, until the caller has enough. Raises Unavailable."""
    filters = [api.subjects.changed_kind(meant.kind, namespace if meant.is_namespaced else None) for meant in wanted]
    async with api.bus.follow(api.subjects.stream("OBJECTS"), filters, after_sequence=after) as follower:
        async for event in follower:
            if isinstance(event, FollowRestarted):
                errors.print("the watch was cut and goes on; changes meanwhile may be missing", style="yellow")
            elif isinstance(event, Delivered) and event.marker is None:
                key = ObjectKey.from_tail(event.subject.removeprefix(f"{api.subjects.prefix}.changed."))
                if known.is_meant(key) and (change := known.change(key, await _state(api, key, event))):
                    yield change


async def _state(api: ApiClient, key: ObjectKey, event: Delivered) -> Document | None:
    if event.headers.get(Header.VERB) == "deleted" or (not event.body and Header.TOO_LARGE not in event.headers):
        return None
    if Header.TOO_LARGE in event.headers:
        answer = await api.answer(f"get.{key.tail}")
        return answer.result if answer.ok else None
    return msgspec.json.decode(event.body, type=dict[str, object])
