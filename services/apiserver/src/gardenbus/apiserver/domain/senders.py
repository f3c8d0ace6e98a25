"""Senders of messages: the subject names them, and the server's header may not say another.

What crosses from another account of the server carries a header with the user who sent it, unless a stream has stored
it: JetStream removes the header (docs/identities.md). So the subject, which the server's permissions and imports
confine, is what proves a sender, and the header can but contradict it: one that names somebody else, or cannot be
read, is a forgery. The adapter writes what cannot be read for one that stands twice, or inside another header
(`adapters.nats.messages`): with a header block that is cut short a sender has the server hide its own.
"""

from collections.abc import Callable

import msgspec

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.keys import Header
from gardenbus.common.api.restored_requests import REQUEST_INFO
from gardenbus.common.errors import BadRequest, Impersonation
from gardenbus.common.ports.bus import Headers


class _RequestInfo(msgspec.Struct, frozen=True):
    user: str = ""


_decode = json_decoder(_RequestInfo)


_decode_groups = json_decoder(tuple[str, ...])


def stated_groups(headers: Headers) -> frozenset[str]:
    """The groups that an insider states of a user. Raises BadRequest for what cannot be read."""
    stated = headers.get(Header.GROUPS)
    if not stated:
        return frozenset()
    try:
        return frozenset(_decode_groups(stated))
    except msgspec.MsgspecError as error:
        raise BadRequest(f"{Header.GROUPS}: {error}") from error


UserOf = Callable[[str], str]
"""The user of a sender as the server states it: an nkey of its configuration names none."""


def as_stated(sender: str) -> str:
    """The user whose name the auth callout has stated."""
    return sender


def check_sender(headers: Headers, user: str, user_of: UserOf = as_stated) -> None:
    """Raise Impersonation when the server states another sender than this one, or what it stated was hidden.

    Where it states none, nothing is proved: neither this user nor that an insider sent the message.
    """
    stated = headers.get(REQUEST_INFO)
    if stated is None:
        return
    try:
        sender = user_of(_decode(stated).user)
    except msgspec.MsgspecError as error:
        raise Impersonation(f"{REQUEST_INFO} cannot be read: {stated[:80]!r}: {error}") from error
    if sender != user:
        raise Impersonation(f"{sender[:80]!r} sent this in the name of {user!r}")
