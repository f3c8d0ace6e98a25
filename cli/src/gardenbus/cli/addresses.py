"""Addresses of servers as they may be shown: without who one is, and without passwords. Pure."""

import re

_SCHEME = re.compile(r"[a-z]+://")


def without_user(urls: str) -> str:
    """NATS' addresses, several with commas between them; the client splits at every comma, so none is in a password."""
    return ",".join(map(_without_user, urls.split(",")))


def without_password(url: str) -> str:
    """The one address of a Redis, whose password may have any character and may also stand behind a `?`."""
    return _without_user(url).partition("?")[0]


def _without_user(address: str) -> str:
    scheme = found[0] if (found := _SCHEME.match(address)) else ""
    return f"{scheme}{address.removeprefix(scheme).rpartition('@')[2]}"
