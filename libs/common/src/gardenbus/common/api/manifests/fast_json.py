"""Fast path of the parser: one well-formed JSON object.

Its results are those of the strict parsers (strict_json.py). Everything else is left to them, as they know all forms
and report errors.
"""

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.manifests.strict_json import ValuePath, finite_number, path_text
from gardenbus.common.api.manifests.strict_yaml import DEEPEST, MOST_VALUES, TOO_MANY_VALUES
from gardenbus.common.errors import BadRequest

LARGEST_FAST = 1024 * 1024
"""Largest object of the fast path in bytes, as received and as compact JSON."""
_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)
_LONG_NUMBER = b"0" * 19
"""Shorter integers fit into 64 bits."""

_decode = msgspec.json.Decoder(float_hook=finite_number).decode


def read_fast(body: bytes) -> Document | None:
    """The one object of a message, or None when the strict parsers have to read it. Raises BadRequest: too many values.

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
    if openings > DEEPEST and is_deeper(document, DEEPEST):
        return None
    if not is_list(document):
        check_values(document, encoded, "")
    return document


def is_list(document: Document) -> bool:
    """True for a List of manifests, typed or not."""
    kind = document.get("kind")
    return isinstance(kind, str) and kind.endswith("List") and isinstance(document.get("items"), list)


def check_values(document: Document, encoded: bytes, place: str) -> None:
    """Raise BadRequest, with the field, for an object of more than MOST_VALUES values."""
    most = encoded.count(b",") + encoded.count(b"{") + encoded.count(b"[")  # before each value is one, if not in text
    if most > MOST_VALUES and (path := _path_beyond(document, MOST_VALUES)) is not None:
        raise BadRequest(f"{place}{path_text(path)[:120]}: {TOO_MANY_VALUES}")


def _path_beyond(document: Document, most: int) -> ValuePath | None:
    """The path of the first value after so many, in their order; None where there are no more."""
    count, path, walks = 0, list[str | int](), [_steps(document)]
    while walks:
        for step, below in walks[-1]:
            count += 1
            if count > most:
                return (*path, step)
            if isinstance(below, dict | list):
                path.append(step)
                walks.append(_steps(cast("Document | list[Any]", below)))
                break
        else:
            walks.pop()
            del path[-1:]
    return None


def _steps(container: Document | list[Any]) -> Iterator[tuple[str | int, Any]]:
    return iter(container.items()) if isinstance(container, dict) else enumerate(container)


def is_deeper(container: Document | list[Any], levels: int) -> bool:
    """True when objects and lists, the outermost included, are nested deeper than some levels."""
    for below in container.values() if isinstance(container, dict) else container:
        if isinstance(below, dict | list) and (levels == 1 or is_deeper(below, levels - 1)):  # pyright: ignore[reportUnknownArgumentType]
            return True
    return False
