"""Follows all objects of a collection: a list, then a watch from its version, for ever.

A watch that the server ends goes on where it was; so does one that is lost, after a pause. A version that is too old
(410) leads to a new list, whose consumer compares it with what it knows. Bookmarks keep the version young.
"""

import random
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Literal, NamedTuple

import structlog

from gardenbus.agent.kubernetes.client import KubernetesClient
from gardenbus.agent.kubernetes.errors import Expired, Throttled
from gardenbus.common.api.document import Document, section
from gardenbus.common.controller.backoff import Backoff
from gardenbus.common.errors import Transient
from gardenbus.common.ports.clock import Clock

_log = structlog.stdlib.get_logger()

_BACKOFF = Backoff(base_seconds=0.5, cap_seconds=30.0)
_SHORTEST_WATCH_SECONDS = 240.0
_SHORT_SECONDS = 1.0
"""A watch that ends sooner was ended by something on the way: it is not begun again at once."""

_GONE = 410


class Listed(NamedTuple):
    """All that there is: what is not here is gone."""

    objects: Sequence[Document]


class Changed(NamedTuple):
    """One object was made, changed or removed."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    object: Document


async def follow(
    client: KubernetesClient, path: str, clock: Clock, query: Mapping[str, str] = {}
) -> AsyncGenerator[Listed | Changed]:
    """See the module. Raises what no repetition changes: NotFound, Forbidden, Unauthorized, BadRequest."""
    version, failures = "", 0
    while True:
        began = clock.monotonic()
        pause = 0.0
        try:
            if not version:
                objects, version = await client.list_all(path, **query)
                yield Listed(objects)
            seconds = _SHORTEST_WATCH_SECONDS * (1 + random.random() / 4)
            async for event in client.events(path, timeout_seconds=seconds, resourceVersion=version, **query):
                changed = _read(event, path)
                version = str(section(event, "object", "metadata").get("resourceVersion") or version)
                failures = 0
                if changed is not None:
                    yield changed
            if clock.monotonic() - began < _SHORT_SECONDS:
                pause = _SHORT_SECONDS
        except Expired:
            version = ""
            failures += 1
            pause = 0.0 if failures == 1 else _pause(failures)
        except Transient as error:
            failures += 1
            pause = max(_pause(failures), error.retry_after_seconds if isinstance(error, Throttled) else 0.0)
            _log.warning("watch.interrupted", path=path, reason=error.message, again_in=round(pause, 1))
        if pause:
            await clock.sleep(pause)


def _pause(failures: int) -> float:
    return _BACKOFF.delay_seconds(failures, random.random())


def _read(event: Document, path: str) -> Changed | None:
    """The change of an event; None for a bookmark. Raises Expired, Transient for an error in the stream."""
    kind, content = event.get("type"), section(event, "object")
    if kind == "ERROR":
        text = f"watch of {path}: {content.get('code')} {content.get('message')}"
        raise Expired(text) if content.get("code") == _GONE else Transient(text)
    if kind not in ("ADDED", "MODIFIED", "DELETED"):
        return None
    return Changed(kind, content)
