"""Bodies of `watch`: changes of objects, polled by those who follow no streams."""

from typing import Any

import msgspec

MOST_SCOPES = 100
MOST_SECONDS = 15
MOST_CHANGES = 500
"""Changes in one response; the next one goes on after them."""


class WatchedKind(msgspec.Struct, frozen=True):
    """Objects of a kind, of one namespace or (None) of all. Events are those about objects of the namespace."""

    kind: str
    namespace: str | None = None


class WatchedUpTo(msgspec.Struct, frozen=True):
    """Place in a stream that has been read to. `created` is its incarnation, in digits (ns since the epoch)."""

    created: str
    sequence: int


class WatchQuery(msgspec.Struct, frozen=True):
    """Body of a request. Without `after` the response states the present position, at once."""

    scopes: tuple[WatchedKind, ...]
    after: WatchedUpTo | None = None
    seconds: int = MOST_SECONDS
    """Longest wait of the response for a change: 1 to MOST_SECONDS."""


class WatchedChange(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One change. `object` is the manifest after it, or the Event; null when it was deleted, or `is_too_large`."""

    subject: str
    """The announcement's subject, without the landscape's prefix."""
    at: str
    sequence: int
    verb: str = ""
    version: str = ""
    is_too_large: bool = False
    object: Any = None


class WatchResult(msgspec.Struct, frozen=True, rename="camel"):
    """Result. `is_restarted`: the stream is another one, or lost what came before, so the objects have to be listed."""

    position: WatchedUpTo
    changes: tuple[WatchedChange, ...] = ()
    is_restarted: bool = False
