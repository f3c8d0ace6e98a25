"""Following of objects and Events: by a stream's consumer, or by watches, for those who may follow no streams."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime

import msgspec

from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.manifests.files import as_mapping
from gardenbus.common.api.keys import Header, ObjectKey
from gardenbus.common.api.watches import MOST_SECONDS, WatchedChange, WatchedKind, WatchedUpTo, WatchResult
from gardenbus.common.errors import CredentialsRejected, Unavailable
from gardenbus.common.ports.bus import FollowEvent, FollowRestarted, ReplayDone, StreamMessage

EVENT = "event"
RESPONSE_SECONDS = MOST_SECONDS + 10.0
RETRY_SECONDS = 1.0


async def present_position(api: ApiClient, scopes: Sequence[WatchedKind]) -> WatchedUpTo:
    """The present end of the stream that these are on. Raises ApiError for those who may not watch them."""
    if api.user:
        return (await _watched(api, scopes, None)).position
    position = await api.bus.position(_stream(api, scopes))
    return WatchedUpTo(str(position.created), position.sequence)


async def follow(
    api: ApiClient, scopes: Sequence[WatchedKind], after: WatchedUpTo | None
) -> AsyncGenerator[FollowEvent]:
    """Messages after a position, for ever; without one the last of each object, `ReplayDone`, and what follows.

    Raises ApiError for those who may not watch them.
    """
    events = _by_watches(api, scopes, after) if api.user else _by_consumer(api, scopes, after)
    async for event in events:
        yield event


async def _by_consumer(
    api: ApiClient, scopes: Sequence[WatchedKind], after: WatchedUpTo | None
) -> AsyncGenerator[FollowEvent]:
    prefix = api.subjects.prefix
    filters = [
        f"{prefix}.event.*.{scope.namespace or '*'}.>"
        if scope.kind == EVENT
        else api.subjects.changed_kind(scope.kind, scope.namespace)
        for scope in scopes
    ]
    sequence = after.sequence if after is not None else None
    following = api.bus.follow(_stream(api, scopes), filters, after_sequence=sequence, last_per_subject=after is None)
    async with following as follower:
        async for event in follower:
            yield event


async def _by_watches(
    api: ApiClient, scopes: Sequence[WatchedKind], after: WatchedUpTo | None
) -> AsyncGenerator[FollowEvent]:
    if after is None:
        after = await present_position(api, scopes)
        for scope in scopes:
            for document in await api.items(f"{scope.kind}.{scope.namespace}" if scope.namespace else scope.kind):
                yield _listed(api, scope.kind, document)
        yield ReplayDone(after.sequence)
    while True:
        try:
            result = await _watched(api, scopes, after)
        except CredentialsRejected:  # they were revoked, or have expired
            raise
        except Unavailable:  # an apiserver is replaced; who is forbidden gets an ApiError
            await asyncio.sleep(RETRY_SECONDS)
            continue
        after = result.position
        if result.is_restarted:
            yield FollowRestarted("the stream is another one, or went back")
        for change in result.changes:
            yield _message(api, change)


async def _watched(api: ApiClient, scopes: Sequence[WatchedKind], after: WatchedUpTo | None) -> WatchResult:
    query = {"scopes": scopes, **({"after": after} if after is not None else {})}
    try:
        return msgspec.convert(await api.call("watch", query, timeout_seconds=RESPONSE_SECONDS), WatchResult)
    except msgspec.ValidationError as error:
        raise Unavailable(
            f"the response to a watch cannot be read; is the apiserver older than this? {error}"
        ) from error


def _stream(api: ApiClient, scopes: Sequence[WatchedKind]) -> str:
    return api.subjects.stream("EVENTS" if any(scope.kind == EVENT for scope in scopes) else "OBJECTS")


def _listed(api: ApiClient, kind: str, document: object) -> StreamMessage:
    """The announcement that there would be of a listed object."""
    metadata = as_mapping(as_mapping(document).get("metadata"))
    key = ObjectKey(kind, str(metadata.get("namespace") or ""), str(metadata.get("name")))
    headers = {Header.VERB: "added", Header.VERSION: str(metadata.get("resourceVersion") or "")}
    body = msgspec.json.encode(document)
    return StreamMessage(api.subjects.changed(key), body, headers, 0, datetime.now(UTC))


def _message(api: ApiClient, change: WatchedChange) -> StreamMessage:
    headers: dict[str, str] = {Header.VERB: change.verb, Header.VERSION: change.version}
    if change.is_too_large:
        headers[Header.TOO_LARGE] = "true"
    body = b"" if change.object is None else msgspec.json.encode(change.object)
    return StreamMessage(
        f"{api.subjects.prefix}.{change.subject}", body, headers, change.sequence, datetime.fromisoformat(change.at)
    )
