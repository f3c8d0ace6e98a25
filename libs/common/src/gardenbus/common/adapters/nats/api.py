"""JetStream's JSON API: requests, and translation of its errors into ours."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

import msgspec

from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.messages import RawMessage, decode_headers
from gardenbus.common.errors import BadRequest, Conflict, GardenbusError, NotFound, Unavailable
from gardenbus.common.ports.bus import StreamMessage

API_TIMEOUT_SECONDS = 5.0
_FIRST_TIMEOUT_SECONDS = 1.0
_LONGER_SECONDS = 0.5

WRONG_LAST_SEQUENCE = frozenset({10071, 10164})
BATCH_INCOMPLETE = 10176
STREAM_NOT_FOUND = 10059
STREAM_NAME_IN_USE = 10058
CONSUMER_NOT_FOUND = 10014
CONSUMER_OFFLINE = 10119
NO_MESSAGE = 10037
_NOT_FOUND = frozenset({STREAM_NOT_FOUND, CONSUMER_NOT_FOUND, NO_MESSAGE})
_SERVER_ERROR = 500
_SHORTEST_ELECTION_NANOSECONDS = 4_000_000_000

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def attempt_timeout_seconds(attempt: int) -> float:
    """Longest wait for a response in the first attempt (0) and in later ones, for requests that may be sent again.

    A cluster loses requests: until a dead leader of its metadata is replaced (4 to 10 s), and when it has one consumer
    made by a server that just died. Those get no response: the next is sent soon; a slow server gets longer each time.
    """
    return min(API_TIMEOUT_SECONDS, _FIRST_TIMEOUT_SECONDS + attempt * _LONGER_SECONDS)


class JetStreamError(Exception):
    """Error response of JetStream: `number` is its err_code, `code` the HTTP-like class."""

    def __init__(self, number: int, code: int, description: str) -> None:
        super().__init__(f"JetStream: {description} ({number})")
        self.number = number
        self.code = code

    def translated(self) -> GardenbusError:
        """Our error for an exception of the client, by what the caller should do."""
        text = str(self)
        if self.number in WRONG_LAST_SEQUENCE:
            return Conflict(text)
        if self.number in _NOT_FOUND:
            return NotFound(text)
        return Unavailable(text) if self.code >= _SERVER_ERROR else BadRequest(text)

    def translated_for_follower(self) -> GardenbusError:
        """The same for who follows, and may wait for what is not there: BadRequest, or Unavailable."""
        error = self.translated()
        return error if isinstance(error, BadRequest) else Unavailable(str(self))


def decode_response(body: bytes) -> dict[str, Any]:
    """Decode a response of the API or an acknowledgement of a publish; raises JetStreamError when it is an error."""
    try:
        response: Any = _decode(body)
    except msgspec.DecodeError as error:
        raise Unavailable(f"JetStream's response cannot be read: {body[:100]!r}") from error
    if not isinstance(response, dict):
        raise Unavailable(f"JetStream's response cannot be read: {body[:100]!r}")
    found = cast("dict[str, Any]", response)
    if error := found.get("error"):
        raise JetStreamError(
            int(error.get("err_code", 0)), int(error.get("code", 500)), str(error.get("description", ""))
        )
    return found


async def call(
    connection: Connection, endpoint: str, payload: Any = None, *, timeout_seconds: float = API_TIMEOUT_SECONDS
) -> dict[str, Any]:
    """Call an endpoint of the API (`$JS.API.<endpoint>`). Raises JetStreamError, or Unavailable without a response."""
    body = b"" if payload is None else _encode(payload)
    response = await connection.request_raw(
        f"{connection.jetstream_api}.{endpoint}", body, timeout_seconds=timeout_seconds
    )
    return decode_response(response.body)


def instant(text: str) -> datetime:
    """Read a server's timestamp (nanoseconds are cut to microseconds)."""
    return from_nanoseconds(nanoseconds(text))


def nanoseconds(text: str) -> int:
    """Read a server's timestamp as nanoseconds since the epoch; any UTC offset."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    digits, offset = fraction, ""
    for sign in "+-":
        position = digits.find(sign)
        if position >= 0:
            digits, offset = digits[:position], digits[position:]
    moment = datetime.fromisoformat(whole + offset)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp()) * 1_000_000_000 + int(digits.ljust(9, "0") or "0")


def from_nanoseconds(value: int) -> datetime:
    """Nanoseconds since the epoch as an instant in UTC."""
    return datetime.fromtimestamp(value / 1_000_000_000, UTC)


class AckSubject(NamedTuple):
    """Metadata of a delivered message, encoded in its reply subject."""

    deliveries: int
    stream_sequence: int
    consumer_sequence: int
    at_nanoseconds: int
    pending: int


_SHORT_FORM = 9
"""Parts of `$JS.ACK.<stream>.<consumer>.…`; the longer form has domain and account before the stream."""


def read_ack_subject(reply: str) -> AckSubject:
    """Parse `$JS.ACK.…`, with or without domain."""
    parts = reply.split(".")
    start = 4 if len(parts) == _SHORT_FORM else 6
    return AckSubject(*map(int, parts[start : start + 5]))


def delivered(message: RawMessage, about: AckSubject) -> StreamMessage:
    """A message of a consumer's, decoded."""
    headers = decode_headers(message.header)
    return StreamMessage(
        message.subject,
        message.body,
        headers,
        about.stream_sequence,
        from_nanoseconds(about.at_nanoseconds),
        headers.get("Nats-Marker-Reason"),
    )


def replicas_of(response: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Servers with a copy of a stream beside its leader."""
    cluster = cast("Mapping[str, Any]", response.get("cluster") or {})
    return cast("Sequence[Mapping[str, Any]]", cluster.get("replicas") or ())


def from_leader(stream: str, response: dict[str, Any]) -> dict[str, Any]:
    """The response to STREAM.INFO, for what the stream has stored. Raises Unavailable where another may lead it."""
    if may_be_deposed(response):
        raise Unavailable(
            f"stream {stream}: the server that responded leads it no longer, or has not heard from the other servers"
        )
    return response


def may_be_deposed(response: Mapping[str, Any]) -> bool:
    """True if the responding server may not lead: it names no leader, or most servers have been silent too long.

    A server that hung, or was cut off, goes on responding with what it had for a moment, as a leader or, while there is
    none, with all servers among the replicas. `replicas[].active` is the time since a message of each in nanoseconds;
    another leader can be elected after four seconds without a heartbeat. Source: nats-server's `jsStreamInfoRequest`.
    """
    replicas = replicas_of(response)
    if replicas and not response["cluster"].get("leader"):
        return True
    in_touch = 1 + sum(0 <= each.get("active", 0) < _SHORTEST_ELECTION_NANOSECONDS for each in replicas)
    return 2 * in_touch <= 1 + len(replicas)
