"""Rejected messages as the stream REJECTED keeps them, decoded for people. Pure."""

import hashlib
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple, cast

import msgspec
import yaml

from gardenbus.common.api.document import section
from gardenbus.common.api.keys import Header

KEPT_BYTES = 64 * 1024
"""Largest part of a body that is kept."""

_REASON = re.compile(r"^(?P<reason>[A-Z]\w+): (?P<message>.*)$", re.DOTALL)
_FIELDS = re.compile(r"(?:^|[\[;:] ?)(?P<field>[a-z]\w*(?:\.[\w-]+|\[[^\]]*\])*): ")


class RejectedMessage(NamedTuple):
    """One rejected message. `id` is its sequence, `subject` its original subject."""

    id: int
    at: datetime
    subject: str
    reason: str
    message: str
    fields: tuple[str, ...]
    digest: str
    body: bytes
    reconcile_id: str = ""
    """Id of the lines about it in the log: `gardenbus logs --grep ID`."""

    @property
    def object(self) -> str:
        """`shoot garden-dev/apollo` by its body, else by its subject; "" when neither names one."""
        document = self.document
        found = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
        metadata = section(found, "metadata") or found
        name = metadata.get("name")
        if found.get("kind") and name:
            place = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
            return f"{str(found['kind']).lower()} {place}{name}"
        return _named_by(self.subject)

    @property
    def document(self) -> Any:
        """Body as a value; None unless it is one document."""
        try:
            return yaml.safe_load(self.body)
        except (yaml.YAMLError, UnicodeDecodeError, ValueError):
            return None

    @property
    def is_cut(self) -> bool:
        """True when only the beginning of the body was kept."""
        return len(self.body) >= KEPT_BYTES and hashlib.sha256(self.body).hexdigest() != self.digest

    @property
    def is_queued_work(self) -> bool:
        """True for work of a queue, which has no content."""
        return ".queue." in self.subject

    @property
    def row(self) -> Mapping[str, Any]:
        """Row for JSON and YAML output."""
        return {
            "id": self.id,
            "at": self.at.isoformat(timespec="milliseconds"),
            "subject": self.subject,
            "object": self.object,
            "reason": self.reason,
            "fields": list(self.fields),
            "message": self.message,
            "reconcileId": self.reconcile_id,
        }


def read_rejected_message(sequence: int, at: datetime, headers: Mapping[str, str], body: bytes) -> RejectedMessage:
    """Decode a rejected message."""
    text = headers.get(Header.REASON, "")
    matched = _REASON.match(text)
    reason, message = (matched["reason"], matched["message"]) if matched else ("", text)
    return RejectedMessage(
        id=sequence,
        at=at,
        subject=headers.get(Header.SUBJECT, ""),
        reason=reason,
        message=message,
        fields=fields_in(message),
        digest=headers.get(Header.SHA256, ""),
        body=body,
        reconcile_id=headers.get(Header.RECONCILE_ID, ""),
    )


def fields_in(message: str) -> tuple[str, ...]:
    """Fields that a reason names (`spec.region`), in order, each once."""
    found = (match["field"] for match in _FIELDS.finditer(message))
    return tuple(dict.fromkeys(field for field in found if "." in field or "[" in field or field == "kind"))


def as_text(rejected: RejectedMessage) -> str:
    """Body for reading or editing: as YAML where it is a document, else as it is."""
    document = rejected.document
    if isinstance(document, dict | list):
        return yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    return rejected.body.decode("utf-8", "replace")


def body_of(text: str) -> bytes:
    """Body for an edited text: JSON where it is one document. Raises ValueError when it is no YAML."""
    try:
        documents = [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {error}") from error
    if not documents:
        raise ValueError("nothing is left of it")
    return msgspec.json.encode(documents[0]) if len(documents) == 1 else text.encode()


def _named_by(subject: str) -> str:
    """`shoot garden-dev/apollo` from a report's or a queue's subject."""
    words = subject.split(".")
    for start, skipped in (("report", 2), ("queue", 2)):
        if start in words[:2]:
            rest = words[words.index(start) + skipped :]
            if start == "queue":
                return "/".join(rest[-2:])
            if len(rest) >= 3:  # noqa: PLR2004 - kind, namespace, name
                place = "" if rest[1] == "_" else f"{rest[1]}/"
                return f"{rest[0]} {place}{'.'.join(rest[2:])}"
    return ""
