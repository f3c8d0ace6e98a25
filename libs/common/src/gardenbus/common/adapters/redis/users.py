"""Redis users: what each service may do there, as data. Pure.

Functions run with the rights of whoever calls them, so a user needs the commands of the functions on its landscape's
keys; that it may only call functions is no rule that Redis has. The patterns are `P` and `P:*` for the prefix P: the
bare prefix is the first key of every call. Only the relay loads and deletes functions (whoever could would have others
run them), and the operator, who may start another landscape there. The user `default` is off, so nobody is anybody
without a password; it may do everything all the same, as Redis loads its append-only file in its name.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Literal, get_args

from gardenbus.common.api.names import LABEL
from gardenbus.common.errors import BadRequest

RedisUser = Literal[
    "relay",
    "apiserver",
    "scheduler",
    "lifecycle",
    "controllermanager",
    "managedseedset",
    "autoscaler",
    "placement",
    "identity",
    "operator",
    "replica",
    "sentinel",
]
"""Services that keep objects, the operator, as whom `doctor` connects, and Redis' own: its replicas and Sentinels."""

USERS: tuple[RedisUser, ...] = get_args(RedisUser)


_CONNECTION = (
    "ping",
    "hello",
    "select",
    "multi",
    "exec",
    "fcall",
    "fcall_ro",
    "function|list",
    "client|setinfo",
    "client|setname",
    "role",
    "wait",
)

_READS = (
    *("exists", "get", "ttl", "type", "lrange"),
    *("hexists", "hget", "hgetall", "hkeys", "hlen", "hmget", "hscan", "hvals"),
    *("scard", "sismember", "smembers", "srandmember", "sscan"),
    *("xlen", "xrange", "xread"),
    *("zcard", "zcount", "zrange", "zrangebylex", "zrangebyscore", "zlexcount", "zscore"),
)

_WRITES = (
    *("del", "set", "incr", "incrby", "decrby", "expire"),
    *("hdel", "hincrby", "hset", "hsetnx"),
    *("ltrim", "rpush", "sadd", "srem"),
    *("xadd", "xtrim", "zadd", "zrem"),
)

_SERVER = ("info", "time")
"""Commands about the whole server, not about anybody's keys."""

_SERVICE = (*_CONNECTION, *_READS, *_WRITES, *_SERVER)

COMMANDS: Mapping[RedisUser, tuple[str, ...]] = {
    **dict.fromkeys(USERS, _SERVICE),
    "relay": (*_SERVICE, "function|load", "function|delete"),
    "operator": (*_SERVICE, "function|load", "function|delete", "config|get"),
    "replica": ("psync", "replconf", "ping"),
    "sentinel": (
        *("multi", "exec", "ping", "role", "info", "subscribe", "publish", "slaveof"),
        *("config|rewrite", "client|setname", "client|kill", "script|kill"),
    ),
}
"""Commands of each user; everybody else, and every other command, is rejected."""

CHANNELS: Mapping[RedisUser, str] = {"sentinel": "&__sentinel__:*"}
"""Channels of a user; by them Sentinels find each other."""

WITHOUT_KEYS: frozenset[RedisUser] = frozenset({"replica", "sentinel"})

SENTINEL_COMMANDS: Mapping[RedisUser, tuple[str, ...]] = {
    "operator": ("@connection", "sentinel", "info", "role"),
    "sentinel": ("@connection", "sentinel"),
}
"""Commands at the Sentinels themselves, of all but these: who the master is."""

_SENTINEL_READS = ("@connection", "sentinel|master", "sentinel|replicas")

EVERY_LANDSCAPES: frozenset[RedisUser] = frozenset({"operator"})
"""Users whose keys are those of every landscape on the server: an operator may start another one there."""


def acl_rules(user: RedisUser, prefix: str) -> tuple[str, ...]:
    """Rules of `ACL SETUSER`, without the password."""
    keys = ("~*",) if user in EVERY_LANDSCAPES else (f"~{prefix}", f"~{prefix}:*")
    channels = (CHANNELS[user],) if user in CHANNELS else ()
    return (
        *("resetkeys", *(() if user in WITHOUT_KEYS else keys), "resetchannels", *channels, "-@all"),
        *(f"+{command}" for command in COMMANDS[user]),
    )


def acl_file(prefix: str, passwords: Mapping[RedisUser, str]) -> str:
    """The text of an `aclfile` for the users that have a password here. It holds no password, only their hashes.

    Raises BadRequest for a prefix that could not be one: in the file it might be read as another rule.
    """
    if not LABEL.fullmatch(prefix):
        raise BadRequest(f"{prefix!r} is no prefix: write small letters, digits and '-', as in garden")
    # Redis reads its append-only file back as this user, and leaves out each transaction that it may not execute.
    lines = ["user default off resetpass ~* &* +@all"]
    for user, password in passwords.items():
        digest = hashlib.sha256(password.encode()).hexdigest()
        lines.append(f"user {user} on #{digest} {' '.join(acl_rules(user, prefix))}")
    return "\n".join([*lines, ""])


def replica_login(passwords: Mapping[RedisUser, str]) -> str:
    """Lines for `redis.conf` by which a replica comes in to its master."""
    return f"masteruser replica\nmasterauth {json.dumps(passwords['replica'])}\n"


def sentinel_login(master: str, passwords: Mapping[RedisUser, str]) -> str:
    """Lines for `sentinel.conf`, after that which names the master: how it comes in to the servers and to its like."""
    password = json.dumps(passwords["sentinel"])
    return (
        f"sentinel auth-user {master} sentinel\nsentinel auth-pass {master} {password}\n"
        f"sentinel sentinel-user sentinel\nsentinel sentinel-pass {password}\n"
    )


def sentinel_users(passwords: Mapping[RedisUser, str]) -> str:
    """Lines for `sentinel.conf` that let the same users in at a Sentinel, where the URL has `sentinel_login=same`."""
    lines = ["user default off"]
    for user, password in passwords.items():
        if user != "replica":
            digest = hashlib.sha256(password.encode()).hexdigest()
            rules = " ".join(f"+{command}" for command in SENTINEL_COMMANDS.get(user, _SENTINEL_READS))
            lines.append(f"user {user} on #{digest} -@all {rules}")
    return "\n".join([*lines, ""])
