"""Limits of the bodies of requests: nobody has the dashboard keep what it does not read."""

from typing import Final

from starlette.types import Message, Receive

from gardenbus.common.errors import Terminal

MOST_BODY_BYTES_BEFORE_LOGIN = 8 * 1024
"""A link's token has 4 KiB at the most."""

MOST_BODY_BYTES = 64 * 1024
"""In a session; no request of the page has more than a few hundred bytes."""

CLOSING: Final = {"Connection": "close"}
"""Of a rejection: what its request goes on to send is not read."""


class RequestEntityTooLarge(Terminal):
    """A body is larger than any that is read here."""

    code = 413
    reason = "RequestEntityTooLarge"


def too_large(most: int) -> str:
    """The message for a body of more bytes."""
    return f"the body of this request is too large: {most // 1024} KiB are read here"


def limited(receive: Receive, most: int) -> Receive:
    """Receive a body of at most so many bytes. Raises RequestEntityTooLarge from what receives more."""
    received = 0

    async def receive_within() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > most:
            raise RequestEntityTooLarge(too_large(most))
        return message

    return receive_within
