"""PURE: what the relay publishes for a page of the outbox.

Messages say what is so *now*: several entries of one object become one message with its current document. Three
lists come out, because they go to different streams with different promises: `changed` and `concerning` in order and
all or nothing, `loose` (work and Events) in any order.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Literal, NamedTuple

from gardenbus.common.ports.bus import Message
from gardenbus.common.ports.outbox import EventNews, ObjectNews, OutboxPage, WorkNews
from gardenbus.common.resources.derived import FOLLOWING_KINDS, GAIN_KINDS
from gardenbus.common.resources.document import StoredObject, encode
from gardenbus.common.resources.keys import LEFT, Header, ObjectKey, Subjects
from gardenbus.common.resources.kinds import by_word

TOMBSTONE_TTL = timedelta(hours=1)
"""How long a removal stands on OBJECTS; informers list again when they were away for half of it."""

Role = Literal["run", "migrate-away", "wait"]

_CONCERNING = ("seed", "shoot")
"""Kinds that gardenlets are told of by themselves."""


class Announcements(NamedTuple):
    """What to publish, and the gain counter that stands announced afterwards."""

    changed: list[Message]
    concerning: list[Message]
    loose: list[Message]
    gain: int


class _Merged(NamedTuple):
    """All entries of one object on a page."""

    newest: ObjectNews
    created: bool
    with_binding: bool
    left: frozenset[str]


def announcements(page: OutboxPage, subjects: Subjects, *, announced_gain: int) -> Announcements:
    """Turn a page of the outbox into messages.

    The gain counter may be believed only by who has seen every change up to it. Kinds that carry gains therefore come
    last, and only the very last message carries the page's counter; the others repeat the one announced before.
    """
    merged = _merge(page.news)
    # What was removed after this page is not announced here: the entry that says so comes later, with its version.
    current = [key for key, entry in merged.items() if page.objects.get(key) or entry.newest.verb == "deleted"]
    order = sorted(current, key=lambda key: key.kind in GAIN_KINDS)
    gain = max([announced_gain, *(entry.newest.gain for entry in merged.values())])
    changed: list[Message] = []
    concerning: list[Message] = []
    bodies: dict[ObjectKey, bytes] = {}
    for key in order:
        entry, stored = merged[key], page.objects.get(key)
        bodies[key] = stored.encoded() if stored is not None else b""
        last = key == order[-1] and key.kind in GAIN_KINDS
        changed.append(_change(entry, stored, subjects, body=bodies[key], gain=gain if last else announced_gain))
    for key, entry in merged.items():
        stored, body = page.objects.get(key), bodies.get(key, b"")
        if key.kind in FOLLOWING_KINDS:
            concerning += _views(entry, stored, page.audiences.get(key, ()), subjects, body=body)
        elif key.kind in _CONCERNING:
            concerning += _concerning(entry, stored, subjects, body=body)
    carried = bool(order) and order[-1].kind in GAIN_KINDS
    loose = [_work(news.tail, subjects) for news in _distinct_work(page.news)]
    loose += [_event(news, subjects) for news in page.news if isinstance(news, EventNews)]
    return Announcements(changed, concerning, loose, gain if carried else announced_gain)


def _merge(news: Sequence[object]) -> Mapping[ObjectKey, _Merged]:
    merged: dict[ObjectKey, _Merged] = {}
    for entry in news:
        if not isinstance(entry, ObjectNews):
            continue
        before = merged.get(entry.key)
        merged[entry.key] = _Merged(
            newest=entry,
            created=entry.verb == "added" or (before is not None and before.created and before.newest.uid == entry.uid),
            with_binding=entry.with_binding or (before is not None and before.with_binding),
            left=frozenset(entry.left) | (before.left if before is not None else frozenset()),
        )
    return merged


def _distinct_work(news: Sequence[object]) -> list[WorkNews]:
    return list({entry.tail: entry for entry in news if isinstance(entry, WorkNews)}.values())


def _headers(entry: ObjectNews, stored: StoredObject | None) -> dict[str, str]:
    version, uid = (stored.version, stored.uid) if stored is not None else (entry.version, entry.uid)
    return {Header.VERSION: str(version), Header.UID: uid}


def _change(entry: _Merged, stored: StoredObject | None, subjects: Subjects, *, body: bytes, gain: int) -> Message:
    headers = _headers(entry.newest, stored)
    headers[Header.GAIN] = str(gain)
    if stored is not None and stored.gate:
        headers[Header.GATE] = str(stored.gate)
    subject = subjects.changed(entry.newest.key)
    if stored is None:
        headers[Header.VERB] = "deleted"
        return Message(subject, b"", headers, ttl=TOMBSTONE_TTL)
    headers[Header.VERB] = "added" if entry.created else "modified"
    return Message(subject, body, headers)


def roles(stored: StoredObject) -> Mapping[str, Role]:
    """Which gardenlets a shoot concerns, and as what."""
    wanted, actual = stored.parts.seed_name, stored.parts.status_seed_name
    if not wanted:
        return {}
    if not actual or actual == wanted:
        return {wanted: "run"}
    return {actual: "migrate-away", wanted: "wait"}


def _concerning(entry: _Merged, stored: StoredObject | None, subjects: Subjects, *, body: bytes) -> list[Message]:
    key = entry.newest.key
    headers = _headers(entry.newest, stored)
    if key.kind == "seed":
        if stored is None and entry.newest.verb != "deleted":
            return []
        subject = subjects.view(key.name, key)
        verb = "modified" if stored is not None else "deleted"
        return [Message(subject, body, headers | {Header.VERB: verb})]
    if not entry.with_binding:
        return []
    current: Mapping[str, Role] = roles(stored) if stored is not None else {}
    if not entry.left:
        return [
            Message(subjects.binding(seed, key.namespace, key.name), body, headers | {Header.ROLE: role})
            for seed, role in current.items()
        ]
    gone = headers | {Header.VERB: "deleted"} | ({Header.ROLE: LEFT} if stored is not None else {})
    messages = [
        Message(subjects.binding(seed, key.namespace, key.name), b"", gone)
        for seed in sorted(entry.left - current.keys())
    ]
    if current:
        messages += [
            Message(subjects.binding(seed, key.namespace, key.name), body, headers | {Header.ROLE: role})
            for seed, role in current.items()
        ]
    return messages


def _views(
    entry: _Merged, stored: StoredObject | None, audience: Sequence[str], subjects: Subjects, *, body: bytes
) -> list[Message]:
    """Show an object that follows a shoot where the shoot is now, and withdraw it where it no longer is."""
    key, headers = entry.newest.key, _headers(entry.newest, stored)
    shown = audience if stored is not None else ()
    messages = [
        Message(subjects.view(seed, key), b"", headers | {Header.VERB: "deleted"})
        for seed in sorted(entry.left.difference(shown))
    ]
    if stored is not None:
        messages += [Message(subjects.view(seed, key), body, headers | {Header.VERB: "modified"}) for seed in shown]
    return messages


def _work(tail: str, subjects: Subjects) -> Message:
    """Work that is due now: whatever timer was set for it goes with the same message."""
    subject = f"{subjects.prefix}.queue.{tail}"
    return Message(subject, b"", {"Nats-Scheduler": subjects.later(subject), "Nats-Schedule-Next": "purge"})


def _event(news: EventNews, subjects: Subjects) -> Message:
    event = news.event
    kind = by_word(event.about.kind)
    document = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{event.about.name}.{news.event_id[:16]}",
            "namespace": event.about.namespace or "default",
            "creationTimestamp": news.first_at,
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
        "count": news.count,
        "firstTimestamp": news.first_at,
        "lastTimestamp": news.at,
    }
    return Message(subjects.event(event.about), encode(document))
