"""Fast path of the parser: one well-formed JSON object.

Its results are those of the strict parsers (strict_json.py). Everything else is left to them, as they know all forms
and report errors.
"""

from typing import Any, cast

import msgspec

from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.manifests.strict_json import finite_number
from gardenbus.common.api.manifests.strict_yaml import DEEPEST

LARGEST_FAST = 1024 * 1024
"""Largest object of the fast path in bytes, as received and as compact JSON."""
_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)
_LONG_NUMBER = b"0" * 19
"""Shorter integers fit into 64 bits."""

_decode = msgspec.json.Decoder(float_hook=finite_number).decode


def read_fast(body: bytes) -> Document | None:
    """The one object of a message, or None when the strict parsers have to read it.

    A repeated key is lost when it is decoded, and its colon with it: so no key was repeated where the encoded object
    has as many colons as the message. An escaped colon would upset the count.
    """
    if len(body) > LARGEST_FAST or (b"\\" in body and b"\\u" in body) or _LONG_NUMBER in body.translate(_DIGITS):
        return None
    try:
        value = _decode(body)
        encoded = encode(value)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or encoded.count(b":") != body.count(b":") or len(encoded) > LARGEST_FAST:
        return None
    document = cast("Document", value)
    openings = encoded.count(b"{") + encoded.count(b"[")
    return None if openings > DEEPEST and is_deeper(document, DEEPEST) else document


def is_deeper(container: Document | list[Any], levels: int) -> bool:
    """True when objects and lists, the outermost included, are nested deeper than some levels."""
    for below in container.values() if isinstance(container, dict) else container:
        if isinstance(below, dict | list) and (levels == 1 or is_deeper(below, levels - 1)):  # pyright: ignore[reportUnknownArgumentType]
            return True
    return False
