"""Asking the apiserver for one object."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import Bus
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import ObjectKey, Subjects

Read = Callable[[ObjectKey], Awaitable[Document | None]]
"""Read an object as it is now; None when it is not there. Raises Unavailable."""

_NOT_FOUND = 404


class _Answer(msgspec.Struct):
    ok: bool = False
    result: dict[str, Any] | None = None
    error: dict[str, Any] = {}


_decode = msgspec.json.Decoder(_Answer).decode


def reading(bus: Bus, subjects: Subjects) -> Read:
    """How to ask on a bus."""

    async def read(key: ObjectKey) -> Document | None:
        answer = _decode(await bus.request(subjects.api(f"get.{key.tail}"), b""))
        if answer.ok:
            return answer.result
        if answer.error.get("code") == _NOT_FOUND:
            return None
        raise Unavailable(f"{key} cannot be read: {answer.error.get('message')}")

    return read
