"""Time that Redis spends in each function and command, from its log of commands with the least time at nought.

Redis carries out one call at a time, so that an entry of the log is one function by itself.
"""

from collections.abc import Sequence
from typing import Any

from gardenbus.bench.guard.profiles import RedisCall
from gardenbus.bench.harness.rig import Rig

MOST_ENTRIES = 1_000_000
_WITHIN = b""
"""Address of a call from inside a function."""

_WRAPPERS = frozenset({"EXEC", "MULTI"})
"""Their commands are entries of their own."""


class CallLog:
    """Log of a rig's Redis; it is kept only between `begin` and `end`, for it costs something."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._own = b""

    async def begin(self) -> None:
        """Log each command from now on."""
        info = bytes(await self._rig.redis.command("CLIENT", "INFO")).decode()
        self._own = info.partition("addr=")[2].split()[0].encode()
        await self._rig.redis.command("CONFIG", "SET", "slowlog-max-len", MOST_ENTRIES)
        await self._rig.redis.command("CONFIG", "SET", "slowlog-log-slower-than", 0)

    async def forget(self) -> None:
        """Forget what was logged so far."""
        await self._rig.redis.command("SLOWLOG", "RESET")

    async def calls(self) -> list[RedisCall]:
        """Calls of services since then, without the measurer's, and without what functions call themselves."""
        entries: Sequence[Any] = await self._rig.redis.command("SLOWLOG", "GET", -1)
        return [
            _call(entry) for entry in entries if entry[4] not in (self._own, _WITHIN) and _name(entry) not in _WRAPPERS
        ]

    async def end(self) -> None:
        """Log nothing any more."""
        await self._rig.redis.command("CONFIG", "SET", "slowlog-log-slower-than", -1)
        await self.forget()


def _name(entry: Any) -> str:
    return bytes(entry[3][0]).decode().upper()


def _call(entry: Any) -> RedisCall:
    name = _name(entry)
    if name.startswith("FCALL"):
        function = bytes(entry[3][1]).decode()
        name = function.split("_", 2)[2] if function.startswith("gb_") else function
    return RedisCall(name, float(entry[2]))
