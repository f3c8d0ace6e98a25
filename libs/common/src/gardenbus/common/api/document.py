"""Manifests in parts: split for the store, and reassembled without parsing.

Each part is the JSON text that was sent, so that unknown fields survive and the store can change what it owns (uid,
versions, the binding, the scheduler's message) without parsing. The parts are a contract with the Redis functions in
`adapters/redis/functions/`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, cast

import msgspec

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.short_cache import short_cache

Document = dict[str, Any]
"""A manifest decoded to plain values."""

STATUS_LABEL = "shoot.gardener.cloud/status"
SEED_LABEL_PREFIX = "name.seed.gardener.cloud/"

SERVER_METADATA = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
)
"""Fields of metadata that the API server sets, whatever is sent. Source: ObjectMeta in Kubernetes' meta/v1."""

_SYSTEM_METADATA = frozenset({*SERVER_METADATA, "finalizers", "labels"})
_TOP_LEVEL = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})

encode = msgspec.json.Encoder().encode
_decode = json_decoder()
_decode_names = json_decoder(tuple[str, ...])
_decode_labels = json_decoder(dict[str, str])
_members = json_decoder(dict[str, msgspec.Raw])


class Parts(NamedTuple):
    """A manifest in parts. `meta` and `rest` are the inside of a JSON object (no braces); the others whole values."""

    api_version: str
    kind: str
    meta: bytes  # metadata without fields that the store owns, labels and finalizers
    labels: bytes  # the inside of the labels' object
    finalizers: tuple[str, ...]
    spec: bytes  # the inside of spec without seedName; b"\0" when there is no spec
    status: bytes  # the inside of status without seedName and, for a waiting shoot, lastOperation
    rest: bytes  # other top-level fields
    seed_name: str  # spec.seedName of a Shoot
    status_seed_name: str  # status.seedName of a Shoot


NO_SPEC = b"\0"


def section(document: Mapping[str, Any], *path: str) -> Document:
    """The mapping at a path of a document; empty when it is missing or is no mapping."""
    here: Any = document
    for name in path:
        if not isinstance(here, dict):
            return {}
        here = here.get(name)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return here if isinstance(here, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _inside(mapping: Mapping[str, Any]) -> bytes:
    return encode(mapping)[1:-1]


def split(document: Document) -> Parts:
    """Split a manifest. Metadata that the store owns (uid, versions, times) is left out."""
    metadata = section(document, "metadata")
    spec: Mapping[str, Any] | None = document.get("spec")
    status = section(document, "status")
    labels = section(metadata, "labels")
    seed_name = status_seed_name = ""
    if document["kind"] == "Shoot":
        seed_name = (spec or {}).get("seedName") or ""
        status_seed_name = status.get("seedName") or ""
        spec = {name: value for name, value in (spec or {}).items() if name != "seedName"}
        status = {name: value for name, value in status.items() if name != "seedName"}
        labels = {name: value for name, value in labels.items() if not name.startswith(SEED_LABEL_PREFIX)}
    return Parts(
        api_version=document["apiVersion"],
        kind=document["kind"],
        meta=metadata_inside(document),
        labels=_inside(labels),
        finalizers=tuple(metadata.get("finalizers") or ()),
        spec=NO_SPEC if spec is None else _inside(spec),
        status=_inside(status),
        rest=_inside({name: value for name, value in document.items() if name not in _TOP_LEVEL}),
        seed_name=seed_name,
        status_seed_name=status_seed_name,
    )


def metadata_inside(document: Document) -> bytes:
    """The part `meta` of a manifest."""
    metadata = section(document, "metadata")
    return _inside({name: value for name, value in metadata.items() if name not in _SYSTEM_METADATA})


def canonical(value: Any) -> bytes:
    """A value as JSON, with the keys of each mapping in their order.

    They are sorted here: the encoder's own sort takes quadratic time where somebody has chosen the order they come in.
    """
    return encode(_in_order(value))


def _in_order(value: Any) -> Any:
    if isinstance(value, dict):
        mapping = cast("Document", value)
        return {name: _in_order(mapping[name]) for name in sorted(mapping)}
    if isinstance(value, list | tuple):
        return [_in_order(entry) for entry in cast("list[Any]", value)]
    return value


def split_encoded(encoded: bytes) -> Parts:
    """Split a manifest that `StoredObject.encoded` assembled: the result of `split`, cut out without decoding."""
    members = _members(encoded)
    metadata = _members(members["metadata"])
    kind: str = _decode(members["kind"])
    if kind == "Shoot":  # its seeds stand in spec, status and labels
        return split(_decode(encoded))
    finalizers = metadata.get("finalizers")
    return Parts(
        api_version=_decode(members["apiVersion"]),
        kind=kind,
        meta=_cut_out(metadata, _SYSTEM_METADATA),
        labels=_inside_of(metadata, "labels"),
        finalizers=_decode_names(finalizers) if finalizers else (),
        spec=_inside_of(members, "spec") if "spec" in members else NO_SPEC,
        status=_inside_of(members, "status"),
        rest=_cut_out(members, _TOP_LEVEL),
        seed_name="",
        status_seed_name="",
    )


def _inside_of(members: Mapping[str, msgspec.Raw], name: str) -> bytes:
    return bytes(members[name])[1:-1] if name in members else b""


def _cut_out(members: Mapping[str, msgspec.Raw], but: frozenset[str]) -> bytes:
    return b",".join(encode(name) + b":" + bytes(value) for name, value in members.items() if name not in but)


class _Annotated(msgspec.Struct):
    annotations: dict[str, str] | None = None


_decode_annotated = json_decoder(_Annotated)


UNKNOWN_LAST_APPLIED = b"null"
"""`last_applied` of an object that came back from the bus, which does not carry what was applied to it."""


class StoredObject(msgspec.Struct, frozen=True, kw_only=True):
    """An object of the store.

    `version` is the resourceVersion, `pending` the inside of the lastOperation that the scheduler marked an
    unschedulable shoot with (in place of status.lastOperation), `scheduling_generation` a number that changes with
    everything a bind depends on in a Seed.
    """

    key: ObjectKey
    parts: Parts
    uid: str
    version: int
    generation: int
    created_at: str
    deleting_at: str = ""
    pending: bytes = b""
    scheduling_generation: int = 0
    last_applied: bytes = b""
    report_stamps: bytes = b""
    owner_setters: bytes = b""
    """The setter of each owner reference (`owners.setters_after`): beside the manifest, which does not state it."""

    @property
    def is_deleting(self) -> bool:
        """True when deletion was requested and finalizers delay it."""
        return bool(self.deleting_at)

    @property
    def labels(self) -> dict[str, str]:
        """The labels, decoded alone."""
        return _decode_labels(b"{%b}" % self._labels())

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations, decoded alone."""
        return _decode_annotated(b"{%b}" % self.parts.meta).annotations or {}

    @property
    def size(self) -> int:
        """Bytes of its parts: about as many as the whole manifest has."""
        parts = self.parts
        return len(parts.meta) + len(parts.labels) + len(parts.spec) + len(parts.status) + len(parts.rest)

    def encoded(self) -> bytes:
        """The whole manifest as JSON, assembled without parsing."""
        parts = self.parts
        members = [_opening(parts.api_version, parts.kind) + self._metadata() + b"}"]
        if parts.spec != NO_SPEC:
            members.append(b'"spec":{%b}' % _with_seed(parts.spec, parts.seed_name))
        if parts.rest:
            members.append(parts.rest)
        if status := self._status():
            members.append(b'"status":{%b}' % status)
        return b",".join(members) + b"}"

    def document(self) -> Document:
        """The whole manifest, decoded anew (the caller may change it)."""
        document: Document = _decode(self.encoded())
        return document

    @property
    def _has_had_spec(self) -> bool:
        """True when more than a deletion has raised the generation."""
        return self.generation > (2 if self.deleting_at else 1)

    def _metadata(self) -> bytes:
        parts = self.parts
        members = [parts.meta] if parts.meta else []
        if labels := self._labels():
            members.append(b'"labels":{%b}' % labels)
        if self.uid:
            members.append(b'"uid":' + encode(self.uid))
        members.append(b'"resourceVersion":"%d"' % self.version)
        if parts.spec != NO_SPEC or self._has_had_spec:
            members.append(b'"generation":%d' % self.generation)
        if self.created_at:
            members.append(b'"creationTimestamp":' + encode(self.created_at))
        if self.deleting_at:
            members.append(b'"deletionTimestamp":' + encode(self.deleting_at))
        if parts.finalizers:
            members.append(_finalizers(parts.finalizers))
        return b",".join(members)

    def _labels(self) -> bytes:
        parts = self.parts
        if not parts.seed_name and not parts.status_seed_name:
            return parts.labels
        seeds = _seed_labels(parts.seed_name, parts.status_seed_name)
        return parts.labels + b"," + seeds if parts.labels else seeds

    def _status(self) -> bytes:
        parts = self.parts
        if not self.pending:
            return _with_seed(parts.status, parts.status_seed_name)
        own = _with_seed(_without_last_operation(parts.status), parts.status_seed_name)
        return b'%b"lastOperation":{%b}' % (own + b"," if own else b"", self.pending)


@short_cache(256)
def _opening(api_version: str, kind: str) -> bytes:
    return b'{"apiVersion":%b,"kind":%b,"metadata":{' % (encode(api_version), encode(kind))


@short_cache(4096)
def _seed_labels(seed: str, status_seed: str) -> bytes:
    """The labels that name the seeds of a shoot."""
    return b",".join(encode(SEED_LABEL_PREFIX + name) + b':"true"' for name in sorted({seed, status_seed} - {""}))


@short_cache(256)
def _finalizers(names: tuple[str, ...]) -> bytes:
    return b'"finalizers":' + encode(names)


@short_cache(4096)
def _seed_member(seed: str) -> bytes:
    return b'"seedName":' + encode(seed)


def _with_seed(inside: bytes, seed: str) -> bytes:
    """The inside of a spec or status with its seedName."""
    if not seed:
        return inside
    member = _seed_member(seed)
    return inside + b"," + member if inside else member


def _without_last_operation(status: bytes) -> bytes:
    """The inside of a status without lastOperation, which `pending` replaces."""
    if b'"lastOperation"' not in status:
        return status
    return _inside({name: value for name, value in _decode(b"{" + status + b"}").items() if name != "lastOperation"})


def opened_lists(documents: Iterable[Document]) -> Iterator[Document]:
    """The manifests, those inside of Lists one by one; what is no manifest is left out."""
    for document in documents:
        if not isinstance(document.get("kind"), str):
            continue
        if document["kind"].endswith("List") and isinstance(document.get("items"), list):
            entries = cast("list[Any]", document["items"])
            yield from opened_lists(cast("Document", entry) for entry in entries if isinstance(entry, dict))
        else:
            yield document
