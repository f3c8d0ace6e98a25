"""Client of the JetStream API: streams, consumers and stored messages of a landscape."""

import base64
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import section
from gardenbus.common.errors import NotFound, Unavailable
from gardenbus.diagnostics.bus_client import BusClient
from gardenbus.diagnostics.stream_states import ConsumerState, StoredMessage, StreamState

RESPONSE_SECONDS = 5.0
WORK_STREAMS = ("REQUESTS", "REPORTS", "QUEUES")
"""The streams whose messages are work: each is taken once, by one of the replicas that listen."""

BEHIND_ALL = 1_000_000_000
_NOT_FOUND = 404

_decode = json_decoder(dict[str, Any])


async def account(api: BusClient) -> Mapping[str, Any]:
    """Limits and usage of JetStream for this account. Raises Unavailable."""
    return await _request(api, "INFO")


async def streams(api: BusClient) -> list[StreamState]:
    """All streams of the server, this landscape's or not. Raises Unavailable."""
    return [_stream_state(each) async for each in _pages(api, "STREAM.LIST", "streams")]


async def consumers(api: BusClient, stream: str) -> list[ConsumerState]:
    """All consumers of a stream; none when there is no such stream. Raises Unavailable."""
    try:
        return [_consumer_state(each) async for each in _pages(api, f"CONSUMER.LIST.{stream}", "consumers")]
    except NotFound:
        return []


async def stored(api: BusClient, stream: str, sequence: int) -> StoredMessage | None:
    """One message, or None when it is not stored (any more). Raises Unavailable."""
    return await _message(api, stream, {"seq": sequence})


async def first_of(api: BusClient, stream: str, subject_filter: str) -> StoredMessage | None:
    """The oldest message that a filter matches. Raises Unavailable."""
    return await _message(api, stream, {"seq": 0, "next_by_subj": subject_filter})


async def count_of(api: BusClient, stream: str, subject_filter: str) -> int:
    """Count a stream's subjects under a filter (messages, where one replaces another). Raises Unavailable."""
    try:
        response = await _request(
            api, f"STREAM.INFO.{stream}", {"subjects_filter": subject_filter, "offset": BEHIND_ALL}
        )
    except NotFound:
        return 0
    return int(response.get("total") or 0)


async def server_time(api: BusClient) -> datetime | None:
    """The server's clock; None when the stream that it is read from does not exist. Raises Unavailable."""
    try:
        response = await _request(api, f"STREAM.INFO.{api.subjects.stream('OBJECTS')}")
    except NotFound:
        return None
    return parse_server_time(response.get("ts"))


def parse_server_time(text: object) -> datetime | None:
    """A server's timestamp, nanoseconds cut; None when it is none, or the one that stands for "never"."""
    whole, _, fraction = str(text or "").partition(".")
    digits = "".join(character for character in fraction if character.isdigit())[:6]
    try:
        found = datetime.fromisoformat(f"{whole.removesuffix('Z')}.{digits or '0'}+00:00").astimezone(UTC)
    except ValueError:
        return None
    return found if found.year > 1 else None


async def _request(api: BusClient, endpoint: str, question: Mapping[str, Any] | None = None) -> dict[str, Any]:
    body = b"" if question is None else msgspec.json.encode(question)
    response = await api.bus.request(f"$JS.API.{endpoint}", body, timeout_seconds=RESPONSE_SECONDS)
    try:
        found = _decode(response)
    except msgspec.MsgspecError as error:
        raise Unavailable(f"JetStream's response to {endpoint} cannot be read: {error}") from error
    error = section(found, "error")
    if error:
        text = f"JetStream: {error.get('description')} ({error.get('err_code')})"
        raise NotFound(text) if error.get("code") == _NOT_FOUND else Unavailable(text)
    return found


async def _pages(api: BusClient, endpoint: str, member: str) -> AsyncIterator[dict[str, Any]]:
    offset = 0
    while True:
        response = await _request(api, endpoint, {"offset": offset})
        page = cast("list[dict[str, Any]]", response.get(member) or [])
        for each in page:
            yield each
        offset += len(page)
        if not page or offset >= int(response.get("total") or 0):
            return


async def _message(api: BusClient, stream: str, question: Mapping[str, Any]) -> StoredMessage | None:
    try:
        message = section(await _request(api, f"STREAM.MSG.GET.{stream}", question), "message")
    except NotFound:
        return None
    return StoredMessage(
        subject=str(message.get("subject")),
        sequence=int(message.get("seq") or 0),
        at=parse_server_time(message.get("time")) or datetime.now(UTC),
        headers=_headers(base64.b64decode(message.get("hdrs") or "")),
        body=base64.b64decode(message.get("data") or ""),
    )


def _headers(block: bytes) -> dict[str, str]:
    lines = block.decode("utf-8", "replace").split("\r\n")[1:]
    parts = (line.partition(":") for line in lines)
    return {name: value.strip() for name, separator, value in parts if separator}


def _stream_state(response: Mapping[str, Any]) -> StreamState:
    state = section(dict(response), "state")
    return StreamState(
        name=str(response["config"]["name"]),
        config=response["config"],
        messages=int(state.get("messages") or 0),
        size_bytes=int(state.get("bytes") or 0),
        last_sequence=int(state.get("last_seq") or 0),
        consumers=int(state.get("consumer_count") or 0),
        first_at=parse_server_time(state.get("first_ts")) if state.get("messages") else None,
        created=str(response.get("created") or ""),
        cluster=section(dict(response), "cluster"),
    )


def _consumer_state(response: Mapping[str, Any]) -> ConsumerState:
    delivered, floor = section(dict(response), "delivered"), section(dict(response), "ack_floor")
    return ConsumerState(
        stream=str(response.get("stream_name")),
        name=str(response.get("name")),
        config=section(dict(response), "config"),
        pending=int(response.get("num_pending") or 0),
        in_flight=int(response.get("num_ack_pending") or 0),
        redelivered=int(response.get("num_redelivered") or 0),
        listening=int(response.get("num_waiting") or 0),
        delivered=int(delivered.get("consumer_seq") or 0),
        delivered_at=parse_server_time(delivered.get("last_active")),
        acknowledged_at=parse_server_time(floor.get("last_active")),
    )
