"""PURE: what the relay publishes for a page of the outbox.

Messages say what is so *now*: several entries of one object become one message with its current document. Three
lists come out, because they go to different streams with different promises: `changed` and `concerning` in order, with
nobody else's in between, `loose` (work and Events) in any order.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Literal, NamedTuple

from gardenbus.common.machinery.cloud_events import attributes, kind_of_binding, kind_of_change
from gardenbus.common.ports.bus import Message
from gardenbus.common.ports.outbox import EventNews, ObjectNews, OutboxPage, WorkNews
from gardenbus.common.ports.tracing import TRACEPARENT
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
    trace: str


class _Told(NamedTuple):
    """What every message about one object of a page says."""

    key: ObjectKey
    stored: StoredObject | None
    headers: Mapping[str, str]
    body: bytes
    event: bytes


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
    told = {key: _told(merged[key].newest, page.objects.get(key), merged[key].trace, is_current=True) for key in order}
    for key in order:
        last = key == order[-1] and key.kind in GAIN_KINDS
        changed.append(_change(merged[key], told[key], subjects, gain=gain if last else announced_gain))
    for key, entry in merged.items():
        if key.kind in FOLLOWING_KINDS or key.kind in _CONCERNING:
            about = told.get(key) or _told(entry.newest, page.objects.get(key), entry.trace, is_current=False)
            if key.kind in FOLLOWING_KINDS:
                concerning += _views(entry, about, page.audiences.get(key, ()), subjects)
            else:
                concerning += _concerning(entry, about, subjects)
    carried = bool(order) and order[-1].kind in GAIN_KINDS
    loose = [_work(news, subjects) for news in _distinct_work(page.news)]
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
            trace=entry.trace or (before.trace if before is not None else ""),
        )
    return merged


def _distinct_work(news: Sequence[object]) -> list[WorkNews]:
    return list({entry.tail: entry for entry in news if isinstance(entry, WorkNews)}.values())


def _told(entry: ObjectNews, stored: StoredObject | None, trace: str, *, is_current: bool) -> _Told:
    version, uid = (stored.version, stored.uid) if stored is not None else (entry.version, entry.uid)
    text = str(version)
    headers = {Header.VERSION: text, Header.UID: uid}
    if trace:
        headers[TRACEPARENT] = trace
    return _Told(
        key=entry.key,
        stored=stored,
        headers=headers,
        body=stored.encoded() if stored is not None and is_current else b"",
        event=attributes(entry.key, uid, text, entry.entry),
    )


def _change(entry: _Merged, told: _Told, subjects: Subjects, *, gain: int) -> Message:
    verb = "deleted" if told.stored is None else "added" if entry.created else "modified"
    headers = {**told.headers, Header.GAIN: str(gain), Header.VERB: verb}
    if told.stored is not None and told.stored.gate:
        headers[Header.GATE] = str(told.stored.gate)
    lines = kind_of_change(subjects.prefix, told.key.kind, verb) + told.event
    return Message(
        subjects.changed(told.key), told.body, headers, TOMBSTONE_TTL if told.stored is None else None, lines
    )


def roles(stored: StoredObject) -> Mapping[str, Role]:
    """Which gardenlets a shoot concerns, and as what."""
    wanted, actual = stored.parts.seed_name, stored.parts.status_seed_name
    if not wanted:
        return {}
    if not actual or actual == wanted:
        return {wanted: "run"}
    return {actual: "migrate-away", wanted: "wait"}


def _concerning(entry: _Merged, told: _Told, subjects: Subjects) -> list[Message]:
    key, stored = told.key, told.stored
    if key.kind == "seed":
        if stored is None and entry.newest.verb != "deleted":
            return []
        verb = "modified" if stored is not None else "deleted"
        return [Message(subjects.view(key.name, key), told.body, {**told.headers, Header.VERB: verb})]
    if not entry.with_binding:
        return []
    current: Mapping[str, Role] = roles(stored) if stored is not None else {}
    messages: list[Message] = []
    if entry.left:
        lost = {Header.VERB: "deleted"} | ({Header.ROLE: LEFT} if stored is not None else {})
        for seed in sorted(entry.left - current.keys()):
            lines = kind_of_binding(subjects.prefix, seed, "deleted") + told.event
            subject = subjects.binding(seed, key.namespace, key.name)
            messages.append(Message(subject, b"", {**told.headers, **lost}, None, lines))
    for seed, role in current.items():
        lines = kind_of_binding(subjects.prefix, seed, role) + told.event
        subject = subjects.binding(seed, key.namespace, key.name)
        messages.append(Message(subject, told.body, {**told.headers, Header.ROLE: role}, None, lines))
    return messages


def _views(entry: _Merged, told: _Told, audience: Sequence[str], subjects: Subjects) -> list[Message]:
    """Show an object that follows a shoot where the shoot is now, and withdraw it where it no longer is."""
    shown = audience if told.stored is not None else ()
    withdrawn, modified = {**told.headers, Header.VERB: "deleted"}, {**told.headers, Header.VERB: "modified"}
    messages = [Message(subjects.view(seed, told.key), b"", withdrawn) for seed in sorted(entry.left.difference(shown))]
    return messages + [Message(subjects.view(seed, told.key), told.body, modified) for seed in shown]


def _work(news: WorkNews, subjects: Subjects) -> Message:
    """Work that is due now: whatever timer was set for it goes with the same message."""
    subject = f"{subjects.prefix}.queue.{news.tail}"
    headers = {"Nats-Scheduler": subjects.later(subject), "Nats-Schedule-Next": "purge"}
    return Message(subject, b"", headers | {TRACEPARENT: news.trace} if news.trace else headers)


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
