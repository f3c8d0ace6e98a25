"""Addresses of servers: checked, and as they may be shown, without user and password. Pure."""

import re
from urllib.parse import urlsplit

from gardenbus.common.adapters.redis.addresses import parse_redis_url
from gardenbus.common.errors import BadRequest

_SCHEME = re.compile(r"[a-z+]+://")
_HOST = re.compile(r"[\w.:%-]+")
"""Characters of a name, or of an address of IPv4 or IPv6 with its zone."""


def without_user(urls: str) -> str:
    """NATS' addresses, several with commas between them; the client splits at every comma, so none is in a password."""
    return ",".join(map(_without_user, urls.split(",")))


def without_password(url: str) -> str:
    """The address of a Redis or several, whose password may have any character and may also stand behind a `?`."""
    return _without_user(url).partition("?")[0]


def has_user(urls: str) -> bool:
    """True where an address says who one is."""
    return "@" in urls


def check_nats_url(url: str, setting: str = "") -> None:
    """Raise BadRequest unless each of the addresses (separated by commas) can be one of a NATS server.

    `setting` begins the message.
    """
    for address in url.split(","):
        try:
            parts = urlsplit(address if "://" in address else f"nats://{address}")
            is_host = _HOST.fullmatch(parts.hostname or "") is not None
            is_place = not parts.path.strip("/") or parts.scheme in ("ws", "wss")
            is_address = parts.scheme in ("nats", "tls", "ws", "wss") and is_host and is_place and parts.port != 0
        except ValueError:
            is_address = False
        if not is_address:
            raise BadRequest(f"{setting}{without_user(address)!r} is no NATS address: write nats://host:port")


def check_redis_url(url: str, setting: str = "") -> None:
    """Raise BadRequest unless this can be the address of a Redis server, of several, or of Sentinels."""
    try:
        parts = urlsplit(parse_redis_url(url).url)
        is_address = parts.scheme == "unix" or (parts.scheme in ("redis", "rediss") and parts.port != 0)
    except ValueError:
        is_address = False
    except BadRequest as error:
        raise BadRequest(f"{setting}{error.message}") from error
    if not is_address:
        raise BadRequest(f"{setting}{without_password(url)!r} is no Redis address: write redis://host:port/0")


def _without_user(address: str) -> str:
    scheme = found[0] if (found := _SCHEME.match(address)) else ""
    return f"{scheme}{address.removeprefix(scheme).rpartition('@')[2]}"
