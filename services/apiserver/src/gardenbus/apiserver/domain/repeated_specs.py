"""Specs of Shoots that come again and again in messages: each text is decoded and checked once.

A message whose one manifest is a Shoot with the text of such a spec is decoded but for the spec. What comes of it is
what the parser makes of the whole; the spec is the same object each time, and must not be changed.
"""

from collections.abc import Sequence
from typing import NamedTuple, cast

import msgspec

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.kinds import in_stored_version
from gardenbus.common.api.manifests.fast_json import read_fast
from gardenbus.common.api.manifests.parser import parse
from gardenbus.common.api.manifests.strict_yaml import DEEPEST, MOST_VALUES

LONGEST_MESSAGE = 16 * 1024
"""Longer messages are left to the parser."""

MOST_SPECS = 200
"""Texts that are kept: each has a few KB."""

MOST_SEEN = 4096
"""Texts of which is noted that they came once: with the second time they are kept."""

_FIELDS = frozenset({"apiVersion", "kind", "metadata", "spec"})
_SHOOT = b'"Shoot"'
_decode_members = json_decoder(dict[str, msgspec.Raw])


class _RepeatedSpec(NamedTuple):
    """A text that the parser has taken, with what it counts in it."""

    decoded: Document
    encoded: bytes
    colons: int
    values: int
    """At most so many values, by the marks before them."""


class RepeatedSpecs:
    """The parser of messages with manifests, with the specs that it has met more than once."""

    def __init__(self) -> None:
        self._seen: dict[int, None] = {}
        self._kept: dict[bytes, _RepeatedSpec] = {}
        self._by_id: dict[int, _RepeatedSpec] = {}

    def parse(self, body: bytes) -> Sequence[Document]:
        """Parse the manifests of one message. Raises BadRequest as `parse` does."""
        text = _spec_text(body)
        if text is None:
            return parse(body)
        members, spec = text
        kept = self._kept.get(spec)
        if kept is not None and (document := _framed(body, members, kept)) is not None:
            return [document]
        documents = parse(body)
        if kept is None:
            self._note(spec, documents)
        return documents

    def encoded(self, document: Document) -> bytes | None:
        """The spec of a document as `encode` writes it, if it is a repeated one."""
        spec = document.get("spec")
        kept = self._by_id.get(id(spec))
        return kept.encoded if kept is not None and kept.decoded is spec else None

    def _note(self, text: bytes, documents: Sequence[Document]) -> None:
        number = hash(text)
        if number not in self._seen:
            if len(self._seen) >= MOST_SEEN:
                del self._seen[next(iter(self._seen))]
            self._seen[number] = None
            return
        decoded = documents[0].get("spec") if len(documents) == 1 else None
        if not isinstance(decoded, dict):
            return
        decoded = cast("Document", decoded)
        encoded = encode(decoded)
        if len(self._kept) >= MOST_SPECS:
            oldest = self._kept.pop(next(iter(self._kept)))
            del self._by_id[id(oldest.decoded)]
        kept = _RepeatedSpec(decoded, encoded, text.count(b":"), _values(encoded))
        self._kept[text] = self._by_id[id(decoded)] = kept


def _spec_text(body: bytes) -> tuple[dict[str, msgspec.Raw], bytes] | None:
    """The members of the one Shoot of a message, and the text of its spec; None for any other message."""
    if len(body) >= LONGEST_MESSAGE or _SHOOT not in body or b"\\u" in body:
        return None
    try:
        members = _decode_members(body)
    except msgspec.DecodeError:
        return None
    if members.keys() != _FIELDS or bytes(members["kind"]) != _SHOOT:
        return None
    return members, bytes(members["spec"])


def _framed(body: bytes, members: dict[str, msgspec.Raw], spec: _RepeatedSpec) -> Document | None:
    """The Shoot with its spec; None where the parser has to read the message.

    Read by itself is the rest of it. No key was repeated where all have as many colons as the message.
    """
    rest = b'{"apiVersion":%b,"kind":%b,"metadata":%b}' % (
        members["apiVersion"],
        members["kind"],
        members["metadata"],
    )
    framed = read_fast(rest)
    if framed is None or body.count(b":") != rest.count(b":") + 1 + spec.colons:
        return None
    values = _values(rest)
    if values >= DEEPEST or values + spec.values >= MOST_VALUES:
        return None
    return in_stored_version({name: spec.decoded if name == "spec" else framed[name] for name in members})


def _values(text: bytes) -> int:
    return text.count(b",") + text.count(b"{") + text.count(b"[")
