"""Addresses in `GARDENBUS_REDIS_URL`: one server, a list of them, or the Sentinels that know which one is master. Pure.

| form                                                    | names                                                   |
|---------------------------------------------------------|---------------------------------------------------------|
| `redis://user@host:6379/0`, `unix:///path`               | one server                                              |
| `redis://user@h1:6379,h2:6379,h3:6379/0`                 | servers, of which one is the master                     |
| `redis+sentinel://user@h1:26379,h2:26379,h3:26379/name`  | Sentinels, and the name by which they know the master;  |
|                                                          | a database may follow it: `/name/0`                     |

`rediss` in the place of `redis` is TLS, to the Sentinels too. User and password are those of the servers. Sentinels
that want a login have it as `?sentinel_username=…&sentinel_password=…` (or the password in a file: access.py), or as
`?sentinel_login=same` the servers'.
"""

import re
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode

from gardenbus.common.errors import BadRequest

REDIS_PORT = 6379
SENTINEL_PORT = 26379

_URL = re.compile(
    r"(?P<scheme>rediss?)(?P<sentinel>\+sentinel)?://(?:(?P<login>[^/?]*)@)?(?P<hosts>[^/?@]+)"
    r"(?P<path>/[^?]*)?(?:\?(?P<query>.*))?"
)
_HOST = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%\w]+\]|[\w.-]+)(?::(?P<port>\d{1,5}))?")
_FORMS = "write redis://host:port/0, several hosts with commas between them, or redis+sentinel://host:port,…/name"
_HIGHEST_PORT = 65535


class ServerAddress(NamedTuple):
    """A server's host and port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


class RedisAddresses(NamedTuple):
    """The parts of the URL."""

    url: str
    """URL of one server, by which the client gets to know user, password, database and TLS."""
    servers: tuple[ServerAddress, ...] = ()
    """Servers of a list; none for a URL of one server."""
    sentinels: tuple[ServerAddress, ...] = ()
    service: str = ""
    """Name of the master at the Sentinels."""
    sentinel_username: str = ""
    sentinel_password: str = ""
    has_same_login: bool = False
    """The Sentinels know the servers' users."""

    @property
    def are_several(self) -> bool:
        """True if the master has to be found among them."""
        return bool(self.servers or self.sentinels)


def parse_redis_url(url: str) -> RedisAddresses:
    """Read the URL. Raises BadRequest, which names the form that is missing and never the password."""
    matched = _URL.fullmatch(url)
    if matched is None or not (matched["sentinel"] or "," in matched["hosts"]):
        return RedisAddresses(url)  # one server: redis-py reads it
    default_port = SENTINEL_PORT if matched["sentinel"] else REDIS_PORT
    hosts = tuple(_address(each, default_port) for each in matched["hosts"].split(","))
    login = f"{matched['login']}@" if matched["login"] is not None else ""
    query = dict(parse_qsl(matched["query"] or "", keep_blank_values=True))
    username, password = query.pop("sentinel_username", ""), query.pop("sentinel_password", "")
    login_at_sentinels = query.pop("sentinel_login", "")
    if login_at_sentinels not in ("", "same"):
        raise BadRequest("sentinel_login is 'same', or left out")
    service, database = "", (matched["path"] or "").strip("/")
    if matched["sentinel"]:
        service, _, database = database.partition("/")
        if not service:
            raise BadRequest("the address of Sentinels lacks the name of their master: append it, as in /garden")
    if database and not database.isdigit():
        raise BadRequest(f"{database!r} is no number of a database: {_FORMS}")
    rest = f"?{urlencode(query, quote_via=quote)}" if query else ""
    plain = f"{matched['scheme']}://{login}{hosts[0]}/{database or 0}{rest}"
    if matched["sentinel"]:
        return RedisAddresses(plain, (), hosts, unquote(service), username, password, bool(login_at_sentinels))
    return RedisAddresses(plain, hosts)


def _address(text: str, default_port: int) -> ServerAddress:
    matched = _HOST.fullmatch(text)
    port = int(matched["port"] or default_port) if matched else 0
    if matched is None or not 0 < port <= _HIGHEST_PORT:
        raise BadRequest(f"{text!r} is no address of a server: {_FORMS}")
    return ServerAddress(matched["host"].strip("[]"), port)
