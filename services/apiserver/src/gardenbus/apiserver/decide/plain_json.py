"""The usual message, read quickly: one JSON object that is plainly in order.

What this reads the strict readers (json_text.py) read the same way. Whatever is not plain is left to them, as they know
all forms and say what is wrong.
"""

from typing import Any, cast

import msgspec

from gardenbus.apiserver.decide.json_text import finite_float
from gardenbus.apiserver.decide.yaml_text import DEEPEST
from gardenbus.common.resources.document import Document, encode

LONGEST_PLAIN = 1024 * 1024
"""Bytes that a plain object may have at most, as it comes and as compact JSON."""
_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)
_LONG_NUMBER = b"0" * 19
"""Shorter whole numbers fit 64 bits."""

_decode = msgspec.json.Decoder(float_hook=finite_float).decode


def read_plain(body: bytes) -> Document | None:
    """The one object of a message, or None when the message takes a closer look.

    A repeated key is lost when it is decoded, and its colon with it: so no key was repeated where the object, written
    again, has as many colons as came. An escaped colon would upset the count.
    """
    if len(body) > LONGEST_PLAIN or (b"\\" in body and b"\\u" in body) or _LONG_NUMBER in body.translate(_DIGITS):
        return None
    try:
        value = _decode(body)
        encoded = encode(value)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or encoded.count(b":") != body.count(b":") or len(encoded) > LONGEST_PLAIN:
        return None
    document = cast("Document", value)
    openings = encoded.count(b"{") + encoded.count(b"[")
    return None if openings > DEEPEST and is_deeper(document, DEEPEST) else document


def is_deeper(container: Document | list[Any], levels: int) -> bool:
    """Whether objects and lists, the outermost counted, are nested in more than so many levels."""
    for below in container.values() if isinstance(container, dict) else container:
        if isinstance(below, dict | list) and (levels == 1 or is_deeper(below, levels - 1)):  # pyright: ignore[reportUnknownArgumentType]
            return True
    return False
