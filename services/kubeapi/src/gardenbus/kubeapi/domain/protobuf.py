"""Decodes bodies in Kubernetes' protobuf: the envelope, and the messages that typed clients send.

Responses are never encoded so: every client that prefers protobuf also takes JSON. A message is a row of `_MESSAGES`:
number of a field, its name and type (`proto` files of Kubernetes' API). Empty strings, and times and structures without
content, stand in protobuf where JSON leaves them out, and are dropped; `false` and 0 may be meant, and are kept.
"""

import base64
import struct
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document
from gardenbus.common.api.shown_values import with_article
from gardenbus.common.errors import BadRequest

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"

_decode = json_decoder()
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 70

_MESSAGES: Mapping[str, str] = {
    "ObjectMeta": "1 name, 2 generateName, 3 namespace, 5 uid, 6 resourceVersion, 7 generation:int,"
    " 8 creationTimestamp:Time, 9 deletionTimestamp:Time, 10 deletionGracePeriodSeconds:int, 11 labels:{string},"
    " 12 annotations:{string}, 13 ownerReferences:[OwnerReference], 14 finalizers:[string]",
    "OwnerReference": "1 kind, 3 name, 4 uid, 5 apiVersion, 6 controller:bool, 7 blockOwnerDeletion:bool",
    "Status": "",
    "DeleteOptions": "1 gracePeriodSeconds:int, 2 preconditions:Preconditions, 3 orphanDependents:bool,"
    " 4 propagationPolicy, 5 dryRun:[string]",
    "Preconditions": "1 uid, 2 resourceVersion",
    "ConfigMap": "1 metadata:ObjectMeta, 2 data:{string}, 3 binaryData:{bytes}, 4 immutable:bool",
    "Secret": "1 metadata:ObjectMeta, 2 data:{bytes}, 3 type, 4 stringData:{string}, 5 immutable:bool",
    "Namespace": "1 metadata:ObjectMeta, 2 spec:NamespaceSpec",
    "NamespaceSpec": "1 finalizers:[string]",
    "ServiceAccount": "1 metadata:ObjectMeta, 2 secrets:[ObjectReference], 3 imagePullSecrets:[LocalReference],"
    " 4 automountServiceAccountToken:bool",
    "ObjectReference": "1 kind, 2 namespace, 3 name, 4 uid, 5 apiVersion, 6 resourceVersion, 7 fieldPath",
    "LocalReference": "1 name",
    "Lease": "1 metadata:ObjectMeta, 2 spec:LeaseSpec",
    "LeaseSpec": "1 holderIdentity, 2 leaseDurationSeconds:int, 3 acquireTime:MicroTime, 4 renewTime:MicroTime,"
    " 5 leaseTransitions:int, 6 strategy, 7 preferredHolder",
    "SelfSubjectReview": "1 metadata:ObjectMeta",
    "SelfSubjectAccessReview": "1 metadata:ObjectMeta, 2 spec:AccessReviewSpec",
    "SubjectAccessReview": "1 metadata:ObjectMeta, 2 spec:AccessReviewSpec",
    "AccessReviewSpec": "1 resourceAttributes:ResourceAttributes, 2 nonResourceAttributes:NonResourceAttributes,"
    " 3 user, 4 groups:[string]",
    "ResourceAttributes": "1 namespace, 2 verb, 3 group, 4 version, 5 resource, 6 subresource, 7 name",
    "NonResourceAttributes": "1 path, 2 verb",
    "SelfSubjectRulesReview": "1 metadata:ObjectMeta, 2 spec:RulesReviewSpec",
    "RulesReviewSpec": "1 namespace",
    "TokenReview": "1 metadata:ObjectMeta, 2 spec:TokenReviewSpec",
    "TokenReviewSpec": "1 token, 2 audiences:[string]",
    "Event": "1 metadata:ObjectMeta, 2 involvedObject:ObjectReference, 3 reason, 4 message, 5 source:EventSource,"
    " 6 firstTimestamp:Time, 7 lastTimestamp:Time, 8 count:int, 9 type, 10 eventTime:MicroTime, 11 series:EventSeries,"
    " 12 action, 13 related:ObjectReference, 14 reportingComponent, 15 reportingInstance",
    "events.k8s.io/v1/Event": "1 metadata:ObjectMeta, 2 eventTime:MicroTime, 3 series:EventSeries,"
    " 4 reportingController, 5 reportingInstance, 6 action, 7 reason, 8 regarding:ObjectReference,"
    " 9 related:ObjectReference, 10 note, 11 type",
    "EventSource": "1 component, 2 host",
    "EventSeries": "1 count:int, 2 lastObservedTime:MicroTime",
    "CertificateSigningRequest": "1 metadata:ObjectMeta, 2 spec:SigningSpec, 3 status:SigningStatus",
    "SigningSpec": "1 request:bytes, 2 username, 4 groups:[string], 5 usages:[string], 7 signerName,"
    " 8 expirationSeconds:int",
    "SigningStatus": "1 conditions:[SigningCondition]",
    "SigningCondition": "1 type, 2 reason, 3 message, 6 status",
}
"""Fields of each message; a type is `string` unless another is named, `[…]` a list, `{…}` a map of strings to it, `^…`
a message whose fields stand in its place. Those of Gardener's kinds, and of Kubernetes' that nothing here acts on, are
in messages.txt, in the same words."""


def _fields_of(text: str) -> Mapping[int, tuple[str, str]]:
    found: dict[int, tuple[str, str]] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        number, _, field = part.partition(" ")
        name, _, kind = field.partition(":")
        found[int(number)] = (name, kind or "string")
    return found


_ROOTS = frozenset(name for name, text in _MESSAGES.items() if text.startswith("1 metadata:ObjectMeta")) | {
    "DeleteOptions"
}
_FIELDS = {name: _fields_of(text) for name, text in _MESSAGES.items()}


def _fields(message: str) -> Mapping[int, tuple[str, str]] | None:
    """The fields of a message; None where it is not known."""
    return _FIELDS.get(message) or _others().get(message)


@cache
def _others() -> Mapping[str, Mapping[int, tuple[str, str]]]:
    """The messages of other kinds, as `.ci/kube-messages` writes them; read when the first one comes."""
    lines = (files("gardenbus.kubeapi.domain") / "messages.txt").read_text("utf-8").splitlines()
    return {name: _fields_of(text) for name, _, text in (line.partition(" = ") for line in lines)}


def decode_protobuf(body: bytes) -> Document:
    """The object in a body. Raises BadRequest for what is cut short, or of a kind that comes as JSON alone."""
    if not body.startswith(MAGIC):
        raise BadRequest("the body is no protobuf of Kubernetes': it does not begin with k8s")
    envelope = {number: value for number, _, value in _entries(body[len(MAGIC) :])}
    types = {number: value for number, _, value in _entries(_bytes(envelope.get(1, b"")))}
    api_version, kind = _text(types.get(1, b"")), _text(types.get(2, b""))
    message = f"{api_version}/{kind}" if _fields(f"{api_version}/{kind}") is not None else kind
    if message not in _ROOTS and "/" not in message:
        raise BadRequest(
            f"{with_article(kind[:80] or 'body without a kind')} is not read as protobuf: send application/json"
        )
    return {"apiVersion": api_version, "kind": kind, **_message(_bytes(envelope.get(2, b"")), message)}


def _message(body: bytes, name: str) -> Document:
    found: Document = {}
    fields = _fields(name) or {}
    for number, _, value in _entries(body):
        field = fields.get(number)
        if field is None:
            continue
        key, kind = field
        if kind.startswith("^"):
            found |= _message(_bytes(value), kind[1:])
        elif kind.startswith("["):
            found.setdefault(key, []).append(_value(value, kind[1:-1]))
        elif kind.startswith("{"):
            entry = {part: content for part, _, content in _entries(_bytes(value))}
            found.setdefault(key, {})[_text(entry.get(1, b""))] = _value(entry.get(2, b""), kind[1:-1])
        elif (read := _value(value, kind)) not in ("", None, {}):
            found[key] = read
    return found


def _value(value: "int | bytes", kind: str) -> Any:
    match kind:
        case "string":
            return _text(value)
        case "bytes":
            return base64.b64encode(_bytes(value)).decode()
        case "int":
            number = _number(value)
            return number - 2**64 if number >= 2**63 else number
        case "bool":
            return bool(_number(value))
        case "Time" | "MicroTime":
            return _time(_bytes(value), has_micros=kind == "MicroTime")
        case _:
            return _special(_bytes(value), kind)


def _special(body: bytes, kind: str) -> Any:
    """A message, or what JSON writes in another form."""
    match kind:
        case "double":
            return struct.unpack("<d", body)[0] if len(body) == 8 else None  # noqa: PLR2004
        case "Quantity":
            return _text(_part(body, 1, b""))
        case "IntOrString":
            is_text = _number(_part(body, 1, 0)) == 1
            return _text(_part(body, 3, b"")) if is_text else _value(_part(body, 2, 0), "int")
        case "Duration":
            return _duration(_value(_part(body, 1, 0), "int"))
        case "RawExtension":
            raw = _bytes(_part(body, 1, b""))
            return _json(raw) if raw else None
        case _:
            return _message(body, kind)


def _part(body: bytes, number: int, otherwise: "int | bytes") -> "int | bytes":
    return next((value for each, _, value in _entries(body) if each == number), otherwise)


def _json(raw: bytes) -> Any:
    try:
        return _decode(raw)
    except msgspec.MsgspecError as error:
        raise BadRequest(f"the body has a part that is no JSON: {error}") from error


def _duration(nanoseconds: int) -> str:
    """As Go writes it: `1h0m0s`, `1.5s`."""
    sign, rest = ("-" if nanoseconds < 0 else ""), abs(nanoseconds)
    minutes, rest = divmod(rest, 60 * 10**9)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{rest / 10**9:.9f}".rstrip("0").rstrip(".")
    leading = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{leading}{seconds}s"


def _time(body: bytes, *, has_micros: bool) -> str | None:
    parts = {number: _number(value) for number, _, value in _entries(body)}
    if not parts.get(1):
        return None
    try:
        instant = datetime.fromtimestamp(parts[1], UTC).replace(microsecond=min(parts.get(2, 0) // 1000, 999_999))
    except (ValueError, OverflowError, OSError) as error:
        raise BadRequest(f"the body has a time that is none: {error}") from error
    return instant.isoformat(timespec="microseconds" if has_micros else "seconds").removesuffix("+00:00") + "Z"


def _entries(body: bytes) -> Iterator[tuple[int, int, "int | bytes"]]:
    """Number, wire type and value of each field."""
    at = 0
    while at < len(body):
        tag, at = _varint(body, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = _varint(body, at)
            yield number, wire, value
            continue
        if wire == _BYTES:
            size, at = _varint(body, at)
        elif wire in (_FIXED32, _FIXED64):
            size = 4 if wire == _FIXED32 else 8
        else:
            raise BadRequest("the body is no protobuf: a field has an unknown type")
        if at + size > len(body):
            raise BadRequest("the body is cut short")
        yield number, wire, body[at : at + size]
        at += size


def _varint(body: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, _LONGEST_VARINT, 7):
        if at >= len(body):
            raise BadRequest("the body is cut short")
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the last byte of a number
            return value & (2**64 - 1), at
    raise BadRequest("the body is no protobuf: a number has no end")


def _bytes(value: "int | bytes") -> bytes:
    if isinstance(value, int):
        raise BadRequest("the body is no protobuf of that kind: a field has another type")
    return value


def _text(value: "int | bytes") -> str:
    try:
        return _bytes(value).decode()
    except UnicodeDecodeError as error:
        raise BadRequest("the body has a text that is not UTF-8") from error


def _number(value: "int | bytes") -> int:
    if isinstance(value, bytes):
        raise BadRequest("the body is no protobuf of that kind: a field has another type")
    return value
