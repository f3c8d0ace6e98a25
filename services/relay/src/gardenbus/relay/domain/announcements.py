"""Messages that the relay publishes for a page of the outbox. Pure.

They carry the current state: several entries of one object become one message with its current document, and a shoot
that has a seed by now is not queued for its scheduler. Three lists come out, because they go to different streams with
different guarantees: `changed` and `bindings` in order, with no other publisher's in between, `loose` (queue messages
and Events) in any order.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from gardenbus.common.api.document import StoredObject, encode
from gardenbus.common.api.index_keys import FOLLOWING_KINDS, UNBLOCKING_KINDS
from gardenbus.common.api.keys import LEFT, Header, ObjectKey, Subjects, queued_shoot
from gardenbus.common.api.kinds import by_word
from gardenbus.common.ports.bus import TOMBSTONE_TTL, Message
from gardenbus.common.ports.tracing import TRACEPARENT
from gardenbus.relay.domain.cloud_events import attributes, kind_of_binding, kind_of_change
from gardenbus.relay.ports.outbox import EventEntry, ObjectEntry, OutboxPage, QueueEntry

BindingRole = Literal["run", "migrate-away", "wait"]

_BINDING_KINDS = ("seed", "shoot")
"""Kinds that gardenlets see by themselves."""


class Announcements(NamedTuple):
    """Messages to publish, and the unblock index that is announced afterwards."""

    changed: list[Message]
    bindings: list[Message]
    loose: list[Message]
    unblock_index: int


class _Merged(NamedTuple):
    """All entries of one object on a page."""

    newest: ObjectEntry
    created: bool
    with_binding: bool
    left: Mapping[str, str]
    """Seed that it is withdrawn from -> uid of the object that is: an earlier one of the name may still run there."""
    trace: str


class _Content(NamedTuple):
    """Parts that all messages about one object of a page share."""

    key: ObjectKey
    stored: StoredObject | None
    headers: Mapping[str, str]
    body: bytes
    event: bytes


def announcements(page: OutboxPage, subjects: Subjects, *, announced_unblock_index: int) -> Announcements:
    """Turn a page of the outbox into messages.

    The unblock index holds only for readers of every change up to it. Kinds that advance it therefore come last, and
    only the very last message carries the page's index; the others repeat the one announced before.
    """
    merged = _merge(page.entries)
    current = [key for key, entry in merged.items() if _is_current(entry.newest, page)]
    order = sorted(current, key=lambda key: key.kind in UNBLOCKING_KINDS)
    unblock_index = max([announced_unblock_index, *(entry.newest.unblock_index for entry in merged.values())])
    changed: list[Message] = []
    bindings: list[Message] = []
    contents = {
        key: _content(merged[key].newest, page.objects.get(key), merged[key].trace, is_current=True) for key in order
    }
    for key in order:
        last = key == order[-1] and key.kind in UNBLOCKING_KINDS
        changed.append(
            _change(
                merged[key], contents[key], subjects, unblock_index=unblock_index if last else announced_unblock_index
            )
        )
    if changed:
        changed[-1] = _settling(changed[-1], page)
    for key, entry in merged.items():
        if key.kind in FOLLOWING_KINDS or key.kind in _BINDING_KINDS:
            content = contents.get(key) or _content(
                _as_removed(entry.newest, page), page.objects.get(key), entry.trace, is_current=False
            )
            if key.kind in FOLLOWING_KINDS:
                bindings += _views(entry, content, page.audiences.get(key, ()), subjects)
            else:
                bindings += _bindings(entry, content, subjects, page.recovery_id)
    carried = bool(order) and order[-1].kind in UNBLOCKING_KINDS
    work = ((entry, _queued_shoot(entry, page)) for entry in _distinct_work(page.entries))
    loose = [_work(entry, subjects) for entry, shoot in work if shoot is None or not shoot.parts.seed_name]
    loose += [_event(entries, subjects) for entries in page.entries if isinstance(entries, EventEntry)]
    return Announcements(changed, bindings, loose, unblock_index if carried else announced_unblock_index)


def _settling(last: Message, page: OutboxPage) -> Message:
    """The last message of a page, with the version up to which everything has been announced by then.

    The outbox is in the order of versions; the messages of a page are not, as each has its object's current version.
    """
    settled = max(entry.version for entry in page.entries if isinstance(entry, ObjectEntry))
    return msgspec.structs.replace(last, headers={**last.headers, Header.SETTLED: str(settled)})


def shoots_bound_soon(page: OutboxPage, *, announced_unblock_index: int) -> frozenset[ObjectKey]:
    """The shoots created on this page that had no seed when it was read, and that schedulers may bind by a hint.

    None, if the page has a cluster event: hints are not followed until it is announced.
    """
    written = [entry for entry in page.entries if isinstance(entry, ObjectEntry)]
    if any(each.key.kind in UNBLOCKING_KINDS and each.unblock_index > announced_unblock_index for each in written):
        return frozenset()
    created = (page.objects.get(entry.key) for entry in written if entry.verb == "added" and entry.key.kind == "shoot")
    return frozenset(shoot.key for shoot in created if shoot is not None and not shoot.parts.seed_name)


def _queued_shoot(entry: QueueEntry, page: OutboxPage) -> StoredObject | None:
    """The shoot that an entry queues for its scheduler, if the page has it."""
    queued = queued_shoot(entry.tail)
    return page.objects.get(queued.key) if queued is not None else None


def _is_current(newest: ObjectEntry, page: OutboxPage) -> bool:
    """True unless the object was removed after this page: that entry comes later, with its version.

    Nor is an earlier removal announced then: an object that came after it may have been, in a higher version.
    """
    if page.objects.get(newest.key):
        return True
    return newest.verb == "deleted" and newest.version >= page.removed.get(newest.key, 0)


def _as_removed(newest: ObjectEntry, page: OutboxPage) -> ObjectEntry:
    """The entry of an object that is gone, in the version of its removal: what was announced may have a higher one."""
    return msgspec.structs.replace(newest, version=max(newest.version, page.removed.get(newest.key, 0)))


def _merge(entries: Sequence[object]) -> Mapping[ObjectKey, _Merged]:
    merged: dict[ObjectKey, _Merged] = {}
    for entry in entries:
        if not isinstance(entry, ObjectEntry):
            continue
        before = merged.get(entry.key)
        merged[entry.key] = _Merged(
            newest=entry,
            created=entry.verb == "added" or (before is not None and before.created and before.newest.uid == entry.uid),
            with_binding=entry.with_binding or (before is not None and before.with_binding),
            left={**(before.left if before is not None else {}), **dict.fromkeys(entry.left, entry.uid)},
            trace=entry.trace or (before.trace if before is not None else ""),
        )
    return merged


def _distinct_work(entries: Sequence[object]) -> list[QueueEntry]:
    return list({entry.tail: entry for entry in entries if isinstance(entry, QueueEntry)}.values())


def _content(entry: ObjectEntry, stored: StoredObject | None, trace: str, *, is_current: bool) -> _Content:
    version, uid = (stored.version, stored.uid) if stored is not None else (entry.version, entry.uid)
    text = str(version)
    headers = {Header.VERSION: text, Header.UID: uid}
    if trace:
        headers[TRACEPARENT] = trace
    return _Content(
        key=entry.key,
        stored=stored,
        headers=headers,
        body=stored.encoded() if stored is not None and is_current else b"",
        event=attributes(entry.key, uid, text, entry.entry),
    )


def _change(entry: _Merged, contents: _Content, subjects: Subjects, *, unblock_index: int) -> Message:
    verb = "deleted" if contents.stored is None else "added" if entry.created else "modified"
    headers = {**contents.headers, Header.UNBLOCK_INDEX: str(unblock_index), Header.VERB: verb}
    if contents.stored is not None and contents.stored.scheduling_generation:
        headers[Header.SCHEDULING_GENERATION] = str(contents.stored.scheduling_generation)
    lines = kind_of_change(subjects.prefix, contents.key.kind, verb) + contents.event
    return Message(
        subjects.changed(contents.key),
        contents.body,
        headers,
        TOMBSTONE_TTL if contents.stored is None else None,
        lines,
    )


def roles(stored: StoredObject) -> Mapping[str, BindingRole]:
    """Seeds whose gardenlets a shoot concerns, with their roles."""
    wanted, actual = stored.parts.seed_name, stored.parts.status_seed_name
    if not wanted:
        return {}
    if not actual or actual == wanted:
        return {wanted: "run"}
    return {actual: "migrate-away", wanted: "wait"}


def _bindings(entry: _Merged, contents: _Content, subjects: Subjects, recovery_id: str) -> list[Message]:
    key, stored = contents.key, contents.stored
    if key.kind == "seed":
        if stored is None and entry.newest.verb != "deleted":
            return []
        verb = "modified" if stored is not None else "deleted"
        recovery = {Header.RECOVERY: recovery_id} if recovery_id else {}
        headers = {**contents.headers, Header.VERB: verb, **recovery}
        return [Message(subjects.view(key.name, key), contents.body, headers)]
    if not entry.with_binding:
        return []
    current: Mapping[str, BindingRole] = roles(stored) if stored is not None else {}
    messages: list[Message] = []
    if entry.left:
        for seed in sorted(entry.left.keys() - current.keys()):
            uid = entry.left[seed]
            has_moved = stored is not None and stored.uid == uid
            lost = {Header.VERB: "deleted", Header.UID: uid} | ({Header.ROLE: LEFT} if has_moved else {})
            lines = kind_of_binding(subjects.prefix, seed, "deleted") + contents.event
            subject = subjects.binding(seed, key.namespace, key.name)
            messages.append(Message(subject, b"", {**contents.headers, **lost}, None, lines))
    for seed, role in current.items():
        lines = kind_of_binding(subjects.prefix, seed, role) + contents.event
        subject = subjects.binding(seed, key.namespace, key.name)
        messages.append(Message(subject, contents.body, {**contents.headers, Header.ROLE: role}, None, lines))
    return messages


def _views(entry: _Merged, contents: _Content, audience: Sequence[str], subjects: Subjects) -> list[Message]:
    """Show an object that follows a shoot where the shoot is now, and withdraw it where it no longer is."""
    shown = audience if contents.stored is not None else ()
    withdrawn, modified = {**contents.headers, Header.VERB: "deleted"}, {**contents.headers, Header.VERB: "modified"}
    messages = [
        Message(subjects.view(seed, contents.key), b"", withdrawn) for seed in sorted(entry.left.keys() - set(shown))
    ]
    return messages + [Message(subjects.view(seed, contents.key), contents.body, modified) for seed in shown]


def _work(entry: QueueEntry, subjects: Subjects) -> Message:
    """Queue message that is due now: its timer, if one was set, goes with the same message."""
    subject = f"{subjects.prefix}.queue.{entry.tail}"
    headers = {"Nats-Scheduler": subjects.later(subject), "Nats-Schedule-Next": "purge"}
    return Message(subject, b"", headers | {TRACEPARENT: entry.trace} if entry.trace else headers)


def _event(entry: EventEntry, subjects: Subjects) -> Message:
    event = entry.event
    kind = by_word(event.about.kind, stored=(event.about.kind,))  # of a kind nobody knows, its name is all there is
    document = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{event.about.name}.{entry.event_id[:16]}",
            "namespace": event.about.namespace or "default",
            "creationTimestamp": entry.first_at,
        },
        "involvedObject": {
            "apiVersion": f"{kind.group}/{kind.version}" if kind.group else kind.version,
            "kind": kind.kind,
            "namespace": event.about.namespace,
            "name": event.about.name,
            "uid": event.uid,
        },
        "type": event.type,
        "reason": event.reason,
        "action": event.action,
        "message": event.message,
        "reportingComponent": event.reporter,
        "count": entry.count,
        "firstTimestamp": entry.first_at,
        "lastTimestamp": entry.at,
    }
    return Message(subjects.event(event.about), encode(document))
