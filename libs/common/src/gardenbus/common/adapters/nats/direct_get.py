"""JetStream's direct get: messages read from whichever server has a copy of the stream.

It may not have got the newest yet: what is decided on a message needs a precondition.
"""

from collections.abc import Sequence

import msgspec

from gardenbus.common.adapters.nats.api import from_nanoseconds, nanoseconds
from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.messages import RawMessage, decode_headers, publish_command
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import StreamMessage

TIMEOUT_SECONDS = 5.0
_END_OF_BATCH = 204
_NOT_FOUND = 404


async def last_message(connection: Connection, stream: str, subject: str) -> StreamMessage | None:
    """Read the last message on a subject, or None. Raises Unavailable."""
    endpoint = f"{connection.jetstream_api}.DIRECT.GET.{stream}.{subject}"
    found = await connection.request_raw(endpoint, b"", timeout_seconds=TIMEOUT_SECONDS)
    if found.status == _NOT_FOUND:
        return None
    if found.status:
        raise Unavailable(f"{subject}: {found.status} {found.description}")
    return _message(found, subject)


async def messages_from(
    connection: Connection, stream: str, subject_filter: str, sequence: int, limit: int
) -> Sequence[StreamMessage]:
    """Read the messages at a sequence and behind it that a filter matches. Raises Unavailable.

    The server may end a batch before the limit, by its size: there are no more only where there are none.
    """
    endpoint = f"{connection.jetstream_api}.DIRECT.GET.{stream}"
    request = msgspec.json.encode({"seq": sequence, "next_by_subj": subject_filter, "batch": limit})
    with connection.awaited_replies(is_last=lambda message: message.status != 0) as (reply, replies):
        *messages, end = await connection.exchange(
            (publish_command(endpoint, request, b"", reply),), replies, about=endpoint, timeout_seconds=TIMEOUT_SECONDS
        )
    if end.status not in (_END_OF_BATCH, _NOT_FOUND):
        raise Unavailable(f"{stream}: {end.status} {end.description}")
    return [_message(each) for each in messages]


def _message(found: RawMessage, subject: str = "") -> StreamMessage:
    headers = decode_headers(found.header)
    try:
        subject = subject or headers["Nats-Subject"]
        sequence, at = int(headers["Nats-Sequence"]), nanoseconds(headers["Nats-Time-Stamp"])
    except (KeyError, ValueError) as error:
        raise Unavailable(f"{subject or found.subject}: the server's response cannot be read") from error
    return StreamMessage(
        subject, found.body, headers, sequence, from_nanoseconds(at), headers.get("Nats-Marker-Reason")
    )
