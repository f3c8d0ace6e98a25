"""Senders of messages, as the server states them.

What comes from another account of the server carries a header with the user who sent it; a forged one is replaced. What
comes from the services' own account has none.
"""

from collections.abc import Callable

import msgspec

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.restored_requests import REQUEST_INFO
from gardenbus.common.errors import Impersonation
from gardenbus.common.ports.bus import Headers


class _RequestInfo(msgspec.Struct, frozen=True):
    user: str = ""


_decode = json_decoder(_RequestInfo)


UserOf = Callable[[str], str]
"""The user of a sender as the server states it: an nkey of its configuration names none."""


def as_stated(sender: str) -> str:
    """The user whose name the auth callout has stated."""
    return sender


def check_sender(headers: Headers, user: str, user_of: UserOf = as_stated) -> None:
    """Raise Impersonation when the server states another sender than this one."""
    stated = headers.get(REQUEST_INFO)
    if stated is None:
        return
    try:
        sender = user_of(_decode(stated).user)
    except msgspec.MsgspecError as error:
        raise Impersonation(f"{REQUEST_INFO} cannot be read: {error}") from error
    if sender != user:
        raise Impersonation(f"{sender[:80]!r} sent this in the name of {user!r}")
