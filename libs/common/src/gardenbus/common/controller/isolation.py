"""Isolation: messages that may have killed a process are handled alone, in a process of their own.

A process that dies takes everything with it that it had fetched, and nobody knows which message it died of. What comes
back is a suspect, unless this very process had it before, and lives. Of a suspect that kills the process in which it is
handled alone, the cause is known for certain: how that process ended. It is rejected; all others are finished.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, NamedTuple

import msgspec

from gardenbus.common.ports.bus import QueueMessage

_REMEMBERED = 4096
"""Messages of which a process remembers that it survived them."""


Handle = Callable[[Sequence[QueueMessage]], Awaitable[None]]
"""Handles a batch of messages, and acknowledges what is done. Raises Transient when a server is away."""


class IsolatedResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """Result of handling a message in a process of its own.

    `death` says how that process ended, if it did; `transient` and `error` what the handler raised. Without any of them
    `ended` is what it did with the message.
    """

    ended: Literal["acknowledged", "released", "kept"] = "kept"
    death: str = ""
    transient: str = ""
    error: str = ""


class Isolation(NamedTuple):
    """Treatment of a consumer's suspects."""

    handle: Callable[[str, QueueMessage], Awaitable[IsolatedResult]]
    """Handles a message of a consumer in a process of its own. Raises Transient where there is none."""

    reject: Callable[[QueueMessage, str], Awaitable[None]]
    """Keeps a message that killed its handler, with the way it did, and acknowledges it. Raises Transient."""


class Survived:
    """Deliveries of messages that this process has handled, and outlived."""

    def __init__(self) -> None:
        self._deliveries: dict[int, int] = {}

    def is_suspect(self, message: QueueMessage) -> bool:
        """True for a message that was delivered before, and not to this process."""
        return message.deliveries - 1 > self._deliveries.get(message.message.sequence, 0)

    def note(self, messages: Sequence[QueueMessage]) -> None:
        """Remember that messages were handled, whatever became of them."""
        for message in messages:
            self._deliveries[message.message.sequence] = message.deliveries
        while len(self._deliveries) > _REMEMBERED:
            del self._deliveries[next(iter(self._deliveries))]
