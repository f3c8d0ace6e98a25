"""The store's functions, run by a Lua in this process: the text that Redis loads, on the data of `redis_data`.

Redis' Lua is 5.1, and so is LuaJIT's; of what Redis offers in `redis`, `cmsgpack`, `cjson` and `bit` there is what the
functions use.
A `Functions` is a loaded library: its memory, which openings it knows and who leads, begins anew with each.
"""

import hashlib
import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, cast

import msgspec

from gardenbus.common.adapters.redis.function_library import Library
from tests.support.memory.redis_data import WRITES, CommandError, RedisData

_PRELUDE = b"""
local execute, sha1hex, decode, encode, unpacked, packed = ...
local function raised(reply)
  if type(reply) == 'table' and reply.err then error(reply, 0) end
  return reply
end
redis = {
  call = function(...) return raised(execute(...)) end,
  pcall = function(...) return execute(...) end,
  sha1hex = sha1hex,
  error_reply = function(message) return {err = message} end,
}
cjson = {decode = decode, encode = encode}
cmsgpack = {
  unpack = function(operation) return type(operation) == 'table' and operation or unpacked(operation) end,
  pack = packed,
}
bit = {
  band = function(a, b)
    local result, place = 0, 1
    while a > 0 and b > 0 do
      if a % 2 == 1 and b % 2 == 1 then result = result + place end
      a, b, place = math.floor(a / 2), math.floor(b / 2), place * 2
    end
    return result
  end,
}
"""


_lua: Any = importlib.import_module("lupa.luajit21")  # its stubs know texts only, and the functions have bytes


_AS_THEY_ARE = frozenset({bool, int, float, type(None)})


class FunctionError(Exception):
    """A function failed on what it was called with."""


class _Interpreter:
    """The Lua of this process, whose `redis.call` works on the data of the functions that run."""

    def __init__(self) -> None:
        self.data: RedisData | None = None
        self.is_read_only = False
        self._lua = _lua.LuaRuntime(encoding=None, unpack_returned_tuples=False, register_eval=False)
        prelude = self._lua.compile(_PRELUDE)
        prelude(self._execute, self._sha1hex, self._decode, self._encode, self._unpacked, self._packed)

    def compile(self, source: str) -> Any:
        """A chunk: each call of it loads the library anew."""
        _header, _, text = source.partition("\n")  # that names the engine and the library
        return self._lua.compile(b"\n" + text.encode())

    def load(self, chunk: Any) -> dict[str, tuple[Any, bool]]:
        """The functions that a library registers, each with whether it only reads."""
        registered: dict[str, tuple[Any, bool]] = {}

        def register(function: Any) -> None:
            flags = function[b"flags"]
            registered[function[b"function_name"].decode()] = function[b"callback"], flags[1] == b"no-writes"

        self._lua.globals()[b"redis"][b"register_function"] = register
        chunk()
        return registered

    def table(self, value: Any) -> Any:
        """A value of an operation as the functions have it, with texts as bytes."""
        if type(value) in _AS_THEY_ARE:
            return value
        if isinstance(value, str):
            return value.encode()
        if isinstance(value, msgspec.Raw):
            return _packed_text(bytes(value))
        if isinstance(value, Mapping):
            fields = cast("Mapping[Any, Any]", value).items()
            return self._lua.table_from(
                {self.table(name): self.table(each) for name, each in fields if each is not None}
            )
        if isinstance(value, (list, tuple)):
            return self._lua.table_from([self.table(each) for each in cast("Sequence[Any]", value)])
        raise TypeError(f"{value!r} cannot be packed for a function of the store")

    def reply(self, value: Any) -> Any:
        """A reply as RESP2 has it."""
        if _lua.lua_type(value) == "table":
            if value[b"err"] is not None:
                return FunctionError(value[b"err"].decode(errors="replace"))
            return [self.reply(value[at]) for at in range(1, len(value) + 1)]
        if value is True:
            return 1
        if value is False:
            return None
        return int(value) if isinstance(value, float) else value

    def _execute(self, name: bytes, *arguments: bytes | float) -> Any:
        assert self.data is not None, "no function runs"
        if self.is_read_only and name in WRITES:
            raise CommandError(f"a function without writes calls {name.decode()}")
        try:
            reply = self.data.execute(name, *arguments)
            return reply if type(reply) is bytes or type(reply) is int else self._replied(reply)
        except CommandError as error:
            return self._lua.table_from({b"err": str(error).encode()})

    def _replied(self, reply: Any) -> Any:
        if reply is None:
            return False
        if isinstance(reply, list):
            parts = cast("list[Any]", reply)
            return self._lua.table_from([each if type(each) is bytes else self._replied(each) for each in parts])
        return reply

    def _plain(self, value: Any) -> Any:
        """A table as lists and dicts."""
        if _lua.lua_type(value) != "table":
            return value.decode() if isinstance(value, bytes) else value
        if len(value):
            return [self._plain(value[at]) for at in range(1, len(value) + 1)]
        return {self._plain(name): self._plain(each) for name, each in value.items()}

    @staticmethod
    def _sha1hex(text: bytes) -> bytes:
        return hashlib.sha1(text, usedforsecurity=False).hexdigest().encode()

    def _decode(self, text: bytes) -> Any:
        return self.table(msgspec.json.decode(text))

    def _encode(self, value: Any) -> bytes:
        return msgspec.json.encode(self._plain(value))

    def _unpacked(self, packed: bytes) -> Any:
        return self.table(msgspec.msgpack.decode(packed))

    def _packed(self, value: Any) -> bytes:
        return msgspec.msgpack.encode(self._plain(value))


class Functions:
    """A library that was loaded: functions by their names, on some data."""

    def __init__(self, data: RedisData, library: Library) -> None:
        self._data = data
        interpreter = self._interpreter = _interpreter()
        self._functions = interpreter.load(_compiled(library.source))
        self._library = library

    def call(self, function: str, prefix: str, *operations: Mapping[str, Any]) -> Any:
        """Call a function. Raises FunctionError."""
        interpreter = self._interpreter
        callback, interpreter.is_read_only = self._functions[self._library.function(function)]
        interpreter.data = self._data
        keys, arguments = interpreter.table([prefix]), interpreter.table(operations)
        try:
            reply = interpreter.reply(callback(keys, arguments))
        except _lua.LuaError as error:
            raise FunctionError(str(error)) from error
        finally:
            interpreter.data = None
        if isinstance(reply, FunctionError):
            raise reply
        return reply


_interpreter: Callable[[], _Interpreter] = cache(_Interpreter)


@cache
def _compiled(source: str) -> Any:
    return _interpreter().compile(source)


def _packed_text(packed: bytes) -> bytes:
    """The text in a string of msgpack (`records.packed_text`)."""
    return packed[{0xD9: 2, 0xDA: 3, 0xDB: 5}[packed[0]] :]
