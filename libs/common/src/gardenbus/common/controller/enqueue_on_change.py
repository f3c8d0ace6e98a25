"""Informer callback that enqueues the objects which a change affects."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.keys import ObjectKey


class ObjectLister(Protocol):
    """Lister of cached objects; an informer is one."""

    def objects(self, kind: str) -> Mapping[ObjectKey, StoredObject]:
        """The objects of a kind."""
        ...


class ChangeRule(NamedTuple):
    """Rule for one kind: a change of its `relevant` part enqueues the `affected` keys, before and after the change."""

    relevant: Callable[[StoredObject], object]
    affected: Callable[[StoredObject], Iterable[ObjectKey]]
    on_delete: bool = True


class EnqueueOnChange:
    """Enqueues by one rule a kind; other kinds are ignored."""

    def __init__(self, enqueue: Callable[[ObjectKey], None], rules: Mapping[str, ChangeRule]) -> None:
        self._enqueue = enqueue
        self._rules = rules

    def changed(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Handle a change of an object."""
        rule = self._rules.get(key.kind)
        if rule is None or (new is None and not rule.on_delete):
            return
        if old is not None and new is not None and rule.relevant(old) == rule.relevant(new):
            return
        for affected in {target for each in (old, new) if each is not None for target in rule.affected(each)}:
            self._enqueue(affected)


def itself(stored: StoredObject) -> tuple[ObjectKey]:
    """The changed object's own key."""
    return (stored.key,)


def beyond_status(stored: StoredObject) -> object:
    """An object apart from its status: relevant to controllers that write the status themselves."""
    return stored.uid, stored.deleting_at, stored.parts._replace(status=b"")
