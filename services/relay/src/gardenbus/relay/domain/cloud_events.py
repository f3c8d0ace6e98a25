"""CloudEvents attributes of announcements, as header lines (binary mode, prefix `ce-`). Pure.

| attribute        | of a change                          | of a binding                        |
|------------------|--------------------------------------|-------------------------------------|
| `ce-specversion` | 1.0                                  | 1.0                                 |
| `ce-type`        | `io.gardenbus.<kind>.<verb>`         | `io.gardenbus.binding.<role>`       |
| `ce-source`      | `/<prefix>/changed`                  | `/<prefix>/binding/<seed>`          |
| `ce-subject`     | `<namespace>/<name>`, or the name    | the same                            |
| `ce-id`          | `<uid>.<version>`: the same again is the same event                        ||
| `ce-time`        | when the change was stored                                                 ||

The relay makes them by the hundred thousand: what does not vary is made once, and what several messages about one
object share is made for all of them together. Source: CloudEvents 1.0.2, NATS protocol binding.
"""

from datetime import UTC, datetime

from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.short_cache import short_cache

TYPE_PREFIX = "io.gardenbus"


@short_cache(4096)
def kind_of_change(prefix: str, kind: str, verb: str) -> bytes:
    """The first lines of a change: what happened to an object of what kind."""
    return _first_lines(f"{kind}.{verb}", f"/{prefix}/changed")


@short_cache(16_384)
def kind_of_binding(prefix: str, seed: str, role: str) -> bytes:
    """The first lines of a binding: what a seed's gardenlet is to do (`deleted`: no longer anything)."""
    return _first_lines(f"binding.{role}", f"/{prefix}/binding/{seed}")


def _first_lines(event: str, source: str) -> bytes:
    return f"ce-specversion: 1.0\r\nce-type: {TYPE_PREFIX}.{event}\r\nce-source: {source}\r\n".encode()


def attributes(key: ObjectKey, uid: str, version: str, entry: str) -> bytes:
    """The other lines: which object, which version, and when. `entry` is the outbox's, which begins with the time."""
    about = f"{key.namespace}/{key.name}" if key.namespace else key.name
    return f"ce-subject: {about}\r\nce-id: {uid}.{version}\r\nce-time: {_time(entry[: entry.find('-')])}\r\n".encode()


@short_cache(4096)
def _time(milliseconds: str) -> str:
    """RFC 3339 to the millisecond, of milliseconds since the epoch."""
    second = datetime.fromtimestamp(int(milliseconds[:-3] or 0), UTC)
    return f"{second:%Y-%m-%dT%H:%M:%S}.{milliseconds[-3:]:0>3}Z"
