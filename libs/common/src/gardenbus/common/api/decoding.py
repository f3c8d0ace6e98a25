"""Decoding of JSON that anybody may have sent."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar, overload

import msgspec

T = TypeVar("T")


@overload
def json_decoder() -> Callable[[bytes | str], Any]: ...
@overload
def json_decoder(wanted: type[T]) -> Callable[[bytes | str], T]: ...
def json_decoder(wanted: Any = Any) -> Callable[[bytes | str], Any]:
    """A decoder that raises nothing but msgspec.DecodeError (a ValidationError is one).

    msgspec itself raises RecursionError for what is nested too deeply, UnicodeDecodeError for what is not UTF-8.
    """
    decode = msgspec.json.Decoder(wanted).decode

    def decoded(body: bytes | str) -> Any:
        try:
            return decode(body)
        except RecursionError as error:
            raise msgspec.DecodeError("nested too deeply") from error
        except UnicodeDecodeError as error:
            raise msgspec.DecodeError(f"not UTF-8: {error.reason} at byte {error.start}") from error

    return decoded


def decode_json(body: bytes | str, wanted: type[T]) -> T:
    """Decode once; see `json_decoder`."""
    return _cached_decoder(wanted)(body)


_cached_decoder = lru_cache(maxsize=256)(json_decoder)
