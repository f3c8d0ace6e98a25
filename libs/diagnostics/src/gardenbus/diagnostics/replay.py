"""Rejected messages of a landscape: read from their stream, and sent again to where they were sent."""

import asyncio
import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple

import msgspec

from gardenbus.common.api.redaction import HIDDEN, UNREADABLE
from gardenbus.common.errors import BadRequest, NotFound, Unavailable
from gardenbus.common.ports.bus import ReplayDone, StreamMessage
from gardenbus.diagnostics import jetstream
from gardenbus.diagnostics.bus_client import BusClient
from gardenbus.diagnostics.rejected_messages import RejectedMessage, read_rejected_message

OUTCOME_SECONDS = 15.0
POLL_SECONDS = 0.1
REPEATED_WITHIN = timedelta(minutes=2)
"""Messages that were rejected again so recently are not sent once more."""


class ReplayOutcome(NamedTuple):
    """Outcome of a replay. `sent`: nobody has taken it yet; `repeated` is the number of its new rejection."""

    state: Literal["queued", "taken", "rejected", "sent"]
    message: str
    is_duplicate: bool = False
    repeated: int = 0


async def rejected_after(api: BusClient, sequence: int, *, upto_sequence: int | None = None) -> list[RejectedMessage]:
    """All that was rejected after a place in the stream, and up to another. Raises Unavailable."""
    found: list[RejectedMessage] = []
    stream = api.subjects.stream("REJECTED")
    async with api.bus.follow(stream, api.subjects.rejections, after_sequence=sequence) as follower:
        async for event in follower:
            if isinstance(event, StreamMessage) and upto_sequence is not None and event.sequence > upto_sequence:
                break
            if isinstance(event, StreamMessage):
                found.append(read_rejected_message(event.sequence, event.at, event.headers, event.body))
            elif isinstance(event, ReplayDone):
                break
    return found


async def rejected_message(api: BusClient, identity: int) -> RejectedMessage:
    """One rejected message by its number. Raises NotFound, Unavailable."""
    message = await jetstream.stored(api, api.subjects.stream("REJECTED"), identity)
    if message is None:
        raise NotFound(f"nothing that was rejected has the number {identity}: see gardenbus rejected")
    return read_rejected_message(message.sequence, message.at, message.headers, message.body)


async def replay_message(api: BusClient, original: RejectedMessage, body: bytes) -> ReplayOutcome:
    """Send a body to where the original was sent, and wait for what comes of it.

    One that was sent again and rejected again within REPEATED_WITHIN is not sent once more. Raises BadRequest when the
    original was not kept whole and the body is its own, or has a Secret without its data; Unavailable.
    """
    if original.is_queued_work:
        await api.bus.request(original.subject, b"")
        return ReplayOutcome("queued", f"{original.subject} is queued again")
    if original.is_cut and body == original.body:
        raise BadRequest(f"{original.id}: only its first {len(body)} bytes were kept: send the original anew")
    if HIDDEN.encode() in body or body == UNREADABLE:
        raise BadRequest(f"{original.id}: the data of its Secret was not kept: edit it, or send the original anew")
    if (earlier := await _rejected_again(api, original, body)) is not None:
        return earlier
    response = msgspec.json.decode(await api.bus.request(original.subject, body), type=dict[str, Any])
    if "seq" not in response:
        raise Unavailable(f"{original.id}: {original.subject} does not keep it: {response.get('error')}")
    return await _outcome(api, original, str(response["stream"]), int(response["seq"]))


async def _rejected_again(api: BusClient, original: RejectedMessage, body: bytes) -> ReplayOutcome | None:
    digest, since = hashlib.sha256(body).hexdigest(), datetime.now(UTC) - REPEATED_WITHIN
    for repeated in reversed(await rejected_after(api, original.id)):
        if (repeated.subject, repeated.digest) == (original.subject, digest) and repeated.at >= since:
            return _repeated(repeated)._replace(is_duplicate=True)
    return None


def _repeated(rejected: RejectedMessage) -> ReplayOutcome:
    return ReplayOutcome("rejected", f"{rejected.reason}: {rejected.message}", repeated=rejected.id)


async def _outcome(api: BusClient, original: RejectedMessage, stream: str, sequence: int) -> ReplayOutcome:
    """Wait until the replay has left its stream; then look for a new rejection."""
    deadline = asyncio.get_running_loop().time() + OUTCOME_SECONDS
    sent = await jetstream.stored(api, stream, sequence)
    while sent is not None and await jetstream.stored(api, stream, sequence) is not None:
        if asyncio.get_running_loop().time() > deadline:
            return ReplayOutcome("sent", f"it was sent (message {sequence} of {stream}), and not handled yet")
        await asyncio.sleep(POLL_SECONDS)
    for repeated in await rejected_after(api, original.id):
        if (
            repeated.subject == original.subject
            and (sent is None or repeated.at >= sent.at)
            and repeated.object == original.object
        ):
            return _repeated(repeated)
    return ReplayOutcome("taken", original.object or original.subject)
