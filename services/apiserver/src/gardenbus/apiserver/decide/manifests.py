"""Reading what people send: the bytes of one message to manifests, with every refusal saying where and how to mend it.

JSON (one document or several, one after the other) and YAML (several documents); a `List` is flattened.
"""

import codecs
from collections.abc import Iterator, Sequence
from typing import Any, cast

from gardenbus.apiserver.decide.json_text import NotJSON, read_json
from gardenbus.apiserver.decide.plain_json import LONGEST_PLAIN, is_deeper, read_plain
from gardenbus.apiserver.decide.yaml_text import DEEPEST, read_yaml
from gardenbus.common.errors import BadRequest
from gardenbus.common.resources.document import Document, encode

LARGEST_MESSAGE = 8 * 1024 * 1024
"""Bytes that one message may have."""
LARGEST_OBJECT = LONGEST_PLAIN
"""Bytes that one object may have as JSON, its status not counted."""
_YAML_WITH_BRACE = 256 * 1024


def parse(body: bytes) -> Sequence[Document]:
    """The manifests of one message, in order.

    Raises BadRequest, with the field or line and the fix: not UTF-8, not JSON or YAML, over 8 MiB, nested deeper than
    64 levels, a repeated key, a key that is no string, a number that would not be kept, aliases that grow, tags, an
    object over 1 MiB, or nothing in it. An empty `List` is no manifests.
    """
    plain = read_plain(body)
    if plain is not None and not _is_list(plain):
        return [plain]
    values = read_values(body)
    if not values:
        raise BadRequest("the message holds no manifest: send JSON or YAML with apiVersion, kind and metadata")
    documents: list[Document] = []
    for position, value in enumerate(values, 1):
        place = f"document {position}: " if len(values) > 1 else ""
        documents += _manifests(value, place)
    return documents


def read_values(body: bytes) -> list[Any]:
    """The plain values of one message, whatever they are. Raises BadRequest as `parse` does."""
    if len(body) > LARGEST_MESSAGE:
        raise BadRequest(f"the message has {len(body)} bytes, {LARGEST_MESSAGE} are allowed: send it in parts")
    try:
        text = body.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise BadRequest(f"not UTF-8: byte {error.start} (line {line}): save the file as UTF-8") from error
    if text.lstrip()[:1] not in ("{", "["):
        return read_yaml(text)
    try:
        return read_json(text)
    except NotJSON:
        if len(text) > _YAML_WITH_BRACE:
            raise
        return _yaml_instead(text)


def _yaml_instead(text: str) -> list[Any]:
    """Read YAML that starts with a brace; when it is none either, what JSON said is the better answer."""
    try:
        return read_yaml(text)
    except BadRequest as error:
        if "not YAML" not in error.message:
            raise
    return read_json(text)


def _manifests(value: Any, place: str) -> Iterator[Document]:
    if not isinstance(value, dict):
        raise BadRequest(
            f"{place}{_described(value)} is no manifest: send an object with apiVersion, kind and metadata"
        )
    document = cast("Document", value)
    if _is_list(document):
        kind = document["kind"]
        for position, entry in enumerate(document["items"]):
            yield from _manifests(_with_type(entry, document, kind), f"{place}items[{position}]: ")
        return
    _check_depth(document, place)
    _check_size(document, place)
    yield document


def _is_list(document: Document) -> bool:
    kind = document.get("kind")
    return isinstance(kind, str) and kind.endswith("List") and isinstance(document.get("items"), list)


def _with_type(entry: Any, parent: Document, kind: str) -> Any:
    """Give an entry of a typed list (`ShootList`) the type that it may leave out."""
    if kind == "List" or not isinstance(entry, dict):
        return entry
    return {"apiVersion": parent.get("apiVersion"), "kind": kind.removesuffix("List"), **cast("Document", entry)}


def _check_depth(document: Document, place: str) -> None:
    if is_deeper(document, DEEPEST):
        raise BadRequest(f"{place}nested deeper than {DEEPEST} levels")


def _check_size(document: Document, place: str) -> None:
    try:
        size = len(encode(document))
    except (UnicodeEncodeError, OverflowError, ValueError) as error:
        raise BadRequest(f"{place}cannot be kept as JSON: {error}") from error
    if size <= LARGEST_OBJECT:
        return
    size = len(encode({field: value for field, value in document.items() if field != "status"}))
    if size > LARGEST_OBJECT:
        raise BadRequest(f"{place}the object has {size} bytes as JSON, {LARGEST_OBJECT} are allowed: make it smaller")


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
