"""Classes of new Shoots: conclusions of admission about one Shoot, for the next of its class."""

from collections.abc import Hashable, Sequence
from datetime import datetime
from typing import NamedTuple, TypeVar

from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.plugins.plugin import Change, VerbCheck
from gardenbus.apiserver.domain.related_objects import RelatedObjects, RelatedQuery
from gardenbus.apiserver.domain.shoot_classes import (
    ClassKey,
    ReadVersions,
    functions_by_name,
    next_expiration,
    read_versions,
)
from gardenbus.common.api.changes import ObjectChange, creation_of
from gardenbus.common.api.document import Document
from gardenbus.common.ports.store import WritePrecondition

MOST_CLASSES = 200
"""Classes that are kept: each holds a manifest of a few KB."""

MOST_SEEN = 4096
"""Classes of which is noted that there was one Shoot: with the second one it is kept."""

_MOST_SIGNED = 64

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")


class AdmittedClass(NamedTuple):
    """A class, by one of its Shoots that was admitted."""

    queries: Sequence[RelatedQuery]
    versions: ReadVersions
    since: datetime
    until: datetime | None
    """It holds from `since` on, and before `until`."""
    checked: Document
    """The Shoot as plug-ins checked it."""
    document: Document
    """The same as it is stored."""
    change: ObjectChange
    preconditions: Sequence[WritePrecondition]
    """Those of the class."""
    notices: tuple[str, ...]


class AdmittedShoot(NamedTuple):
    """A new Shoot of a class that is admitted."""

    document: Document
    like: ObjectChange
    preconditions: Sequence[WritePrecondition]
    notices: tuple[str, ...]


class AdmittedClasses:
    """Classes of new Shoots that one chain of admission has seen."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._by_name = functions_by_name(admission)
        self._seen: dict[int, None] = {}
        self._kept: dict[ClassKey, AdmittedClass] = {}
        self._signed: dict[int, tuple[RelatedObjects, ReadVersions | None]] = {}

    def of(self, key: ClassKey) -> AdmittedClass | None:
        """A class that is kept; whether it still holds says `admitted`."""
        return self._kept.get(key)

    def admitted(
        self, kept: AdmittedClass, sent: Document, related: RelatedObjects, *, user: str, now: datetime
    ) -> AdmittedShoot | None:
        """The admission of a Shoot of a class, whose queries found `related`; None where it has to be admitted anew.

        Raises what the plug-ins raise that are called for each Shoot.
        """
        if self._by_name is None or now < kept.since or (kept.until is not None and now >= kept.until):
            return None
        if self._versions(related) != kept.versions:
            return None
        name: str = sent["metadata"]["name"]
        document = _named(kept.document, name)
        change = Change(document, None, user, now)
        if self._by_name.admit:
            checked = _named(kept.checked, name)
            for admit in self._by_name.admit:
                admit(checked, change, related)
        guards = [guard for find in self._by_name.guards for guard in find(document, change, related)]
        return AdmittedShoot(document, kept.change, (*kept.preconditions, *guards), kept.notices)

    def note(  # noqa: PLR0913  all that was concluded
        self,
        key: ClassKey,
        checked: Document,
        document: Document,
        related: RelatedObjects,
        *,
        queries: Sequence[RelatedQuery],
        user: str,
        now: datetime,
        notices: tuple[str, ...],
    ) -> None:
        """Keep what was concluded of a Shoot that is admitted, as of `now`, if it is not the first of its class.

        `checked`: the Shoot as plug-ins checked it; `document`: as it is stored.
        """
        if self._by_name is None or not self._has_been_seen(key):
            return
        versions = self._versions(related)
        if versions is None or document.get("status") is not None:
            return
        change, by_name = Change(document, None, user, now), self._by_name.guards
        guards = self._admission.guards_of("Shoot")
        kept = AdmittedClass(
            queries=queries,
            versions=versions,
            since=now,
            until=next_expiration(related, now),
            checked=checked,
            document=document,
            change=creation_of(document),
            preconditions=tuple(
                guard for find in guards if find not in by_name for guard in find(document, change, related)
            ),
            notices=notices,
        )
        self._kept.pop(key, None)
        _put(self._kept, key, kept, MOST_CLASSES)

    def _has_been_seen(self, key: ClassKey) -> bool:
        number = hash(key)
        if number in self._seen:
            return True
        _put(self._seen, number, None, MOST_SEEN)
        return False

    def _versions(self, related: RelatedObjects) -> ReadVersions | None:
        """The same of what was read once for several Shoots."""
        signed = self._signed.get(id(related))
        if signed is not None and signed[0] is related:
            return signed[1]
        versions = read_versions(related)
        _put(self._signed, id(related), (related, versions), _MOST_SIGNED)
        return versions


def _named(shoot: Document, name: str) -> Document:
    return {**shoot, "metadata": {**shoot["metadata"], "name": name}}


class NotedVerbCheck:
    """A check of verbs that notes whether it was called: then the admission holds for this request alone."""

    def __init__(self, check: VerbCheck) -> None:
        self._check = check
        self.was_called = False

    def __call__(self, old: Document | None, new: Document) -> None:
        """Raise Forbidden as the check does."""
        self.was_called = True
        self._check(old, new)


def _put(kept: dict[KeyT, ValueT], key: KeyT, value: ValueT, most: int) -> None:
    while len(kept) >= most:
        del kept[next(iter(kept))]
    kept[key] = value
