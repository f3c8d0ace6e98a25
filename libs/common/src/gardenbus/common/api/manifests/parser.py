"""Parser of messages with manifests; each error names its place and the remedy.

JSON (one document or several, one after the other) and YAML (several documents); a `List` is flattened.
"""

import codecs
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, cast

from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.kinds import in_stored_version
from gardenbus.common.api.manifests.fast_json import LARGEST_FAST, check_values, is_deeper, is_list, read_fast
from gardenbus.common.api.manifests.strict_json import NotJSON, read_json, too_many_manifests
from gardenbus.common.api.manifests.strict_yaml import DEEPEST, DEEPEST_VALUE, read_yaml
from gardenbus.common.api.shown_values import shown
from gardenbus.common.errors import BadRequest

LARGEST_MESSAGE = 8 * 1024 * 1024
"""Largest message in bytes."""
LARGEST_OBJECT = LARGEST_FAST
"""Largest object in bytes as JSON, without its status."""
MOST_MANIFESTS = 20_000
"""Most manifests of one message."""
_YAML_WITH_BRACE = 256 * 1024
_LONGEST_TYPE = 1024


def parse(body: bytes, *, most_manifests: int = MOST_MANIFESTS) -> Sequence[Document]:
    """Parse the manifests of one message, in order.

    Raises BadRequest, with the field or line and the remedy: not UTF-8, not JSON or YAML, over 8 MiB, nested deeper
    than 64 levels, a repeated key, a key that is no string, a number that would lose precision, growing aliases, tags,
    an object over 1 MiB or of more than MOST_VALUES values, too many or no manifests. An empty `List` has none.
    """
    plain = read_fast(body)
    if plain is not None and plain.get("kind") != "List" and not is_list(plain):
        return [in_stored_version(plain)]
    if plain is not None and is_list(plain) and len(plain["items"]) > most_manifests:
        raise too_many_manifests(most_manifests)
    values = read_values(body, most_manifests)
    if not values:
        raise BadRequest("the message holds no manifest: send JSON or YAML with apiVersion, kind and metadata")
    documents: list[Document] = []
    for position, value in enumerate(values, 1):
        place = f"document {position}: " if len(values) > 1 else ""
        documents += islice(_manifests(value, place), most_manifests + 1 - len(documents))
    if len(documents) > most_manifests:
        raise too_many_manifests(most_manifests)
    return documents


def read_object(body: bytes, otherwise: str) -> Document:
    """Parse the one object of a message. Raises BadRequest as `parse` does, and with this text for anything else."""
    values = read_values(body)
    if len(values) != 1 or not isinstance(values[0], dict):
        raise BadRequest(otherwise)
    document = cast("Document", values[0])
    check_values(document, _encoded(document), "")
    return document


def read_values(body: bytes, most: int = MOST_MANIFESTS) -> list[Any]:
    """Parse the plain values of one message, of any type: all of them can be written as JSON again.

    Raises BadRequest as `parse` does.
    """
    if len(body) > LARGEST_MESSAGE:
        raise BadRequest(f"the message has {len(body)} bytes, {LARGEST_MESSAGE} are allowed: send it in parts")
    try:
        text = body.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise BadRequest(f"not UTF-8: byte {error.start} (line {line}): save the file as UTF-8") from error
    if text.lstrip()[:1] not in ("{", "["):
        return read_yaml(text, most)
    try:
        values = read_json(text, most)
    except NotJSON:
        if len(text) > _YAML_WITH_BRACE:
            raise
        return _yaml_instead(text, most)
    if "\\u" in text:  # half of a surrogate pair can be escaped, and not encoded
        _encoded(values)
    if text.count("{") + text.count("[") > DEEPEST_VALUE and is_deeper(values, DEEPEST_VALUE + 1):
        raise BadRequest(f"nested deeper than {DEEPEST} levels")
    return values


def _yaml_instead(text: str, most: int) -> list[Any]:
    """Parse YAML that starts with a brace; if it is none either, raise the error of JSON."""
    try:
        return read_yaml(text, most)
    except BadRequest as error:
        if "not YAML" not in error.message:
            raise
    return read_json(text, most)


def _manifests(value: Any, place: str) -> Iterator[Document]:
    if not isinstance(value, dict):
        raise BadRequest(
            f"{place}{_described(value)} is no manifest: send an object with apiVersion, kind and metadata"
        )
    document = cast("Document", value)
    if is_list(document):
        kind = document["kind"]
        if len(_encoded([document.get("apiVersion"), kind], place)) > _LONGEST_TYPE:  # each entry gets them
            raise BadRequest(
                f"{place}apiVersion and kind of a list have more than {_LONGEST_TYPE} bytes: write them as documented"
            )
        for position, entry in enumerate(document["items"]):
            yield from _manifests(_with_type(entry, document, kind), f"{place}items[{position}]: ")
        return
    if document.get("kind") == "List":
        raise BadRequest(f"{place}items: must be a list of manifests, not {shown(document.get('items'))}")
    _check_depth(document, place)
    _check_size(document, place)
    yield in_stored_version(document)


def _with_type(entry: Any, parent: Document, kind: str) -> Any:
    """Add the type of a typed list (`ShootList`) to an entry without one."""
    if kind == "List" or not isinstance(entry, dict):
        return entry
    return {"apiVersion": parent.get("apiVersion"), "kind": kind.removesuffix("List"), **cast("Document", entry)}


def _check_depth(document: Document, place: str) -> None:
    if is_deeper(document, DEEPEST):
        raise BadRequest(f"{place}nested deeper than {DEEPEST} levels")


def _encoded(value: Any, place: str = "") -> bytes:
    """A value as JSON. Raises BadRequest where it cannot be written."""
    try:
        return encode(value)
    except (UnicodeEncodeError, OverflowError, ValueError, RecursionError) as error:
        raise BadRequest(f"{place}cannot be kept as JSON: {error}") from error


def _check_size(document: Document, place: str) -> None:
    size = len(encoded := _encoded(document, place))
    if size > LARGEST_OBJECT:
        size = len(encode({field: value for field, value in document.items() if field != "status"}))
    if size > LARGEST_OBJECT:
        raise BadRequest(f"{place}the object has {size} bytes as JSON, {LARGEST_OBJECT} are allowed: make it smaller")
    check_values(document, encoded, place)


def _described(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return f"the text {value[:40]!r}"
        case _:
            return "a list"
