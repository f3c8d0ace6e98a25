"""Senders of messages, as the server states them.

What comes from another account of the server carries a header with the user who sent it; a forged one is replaced. What
comes from the services' own account has none.
"""

import msgspec

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.errors import Impersonation
from gardenbus.common.ports.bus import Headers

REQUEST_INFO = "Nats-Request-Info"


class _RequestInfo(msgspec.Struct, frozen=True):
    user: str = ""


_decode = json_decoder(_RequestInfo)


def check_sender(headers: Headers, *users: str) -> None:
    """Raise Impersonation when the server states another sender than one of these."""
    stated = headers.get(REQUEST_INFO)
    if stated is None:
        return
    try:
        sender = _decode(stated).user
    except msgspec.MsgspecError as error:
        raise Impersonation(f"{REQUEST_INFO} cannot be read: {error}") from error
    if sender not in users:
        raise Impersonation(f"{sender[:80]!r} sent this in the name of {users[0]!r}")
