"""What the landscape could not take: each as it is kept on `garden.rejected`, read for people. Pure."""

import hashlib
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
import yaml

from gardenbus.cli.documents import as_mapping
from gardenbus.common.resources.keys import Header

KEPT_BYTES = 64 * 1024
"""What is kept of a message, at the most."""

_REASON = re.compile(r"^(?P<reason>[A-Z]\w+): (?P<message>.*)$", re.DOTALL)
_FIELDS = re.compile(r"(?:^|[\[;:] ?)(?P<field>[a-z]\w*(?:\.[\w-]+|\[[^\]]*\])*): ")


class RefusedMessage(NamedTuple):
    """One message that could not be taken. `id` is its place among them, `subject` where it was sent to."""

    id: int
    at: datetime
    subject: str
    reason: str
    message: str
    fields: tuple[str, ...]
    digest: str
    body: bytes

    @property
    def object(self) -> str:
        """`shoot garden-dev/apollo`, as far as its body says; else what its subject names; else ""."""
        found = as_mapping(self.document)
        metadata = as_mapping(found.get("metadata")) or found
        name = metadata.get("name")
        if found.get("kind") and name:
            place = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
            return f"{str(found['kind']).lower()} {place}{name}"
        return _named_by(self.subject)

    @property
    def document(self) -> Any:
        """Its body as a value; None where it cannot be read as one document."""
        try:
            return yaml.safe_load(self.body)
        except (yaml.YAMLError, UnicodeDecodeError, ValueError):
            return None

    @property
    def is_cut(self) -> bool:
        """Whether only the beginning of it was kept."""
        return len(self.body) >= KEPT_BYTES and hashlib.sha256(self.body).hexdigest() != self.digest

    @property
    def is_queued_work(self) -> bool:
        """Whether it is work of a queue, which has no content, rather than something that was sent."""
        return ".queue." in self.subject

    @property
    def row(self) -> Mapping[str, Any]:
        """What programs are told of it."""
        return {
            "id": self.id,
            "at": self.at.isoformat(timespec="milliseconds"),
            "subject": self.subject,
            "object": self.object,
            "reason": self.reason,
            "fields": list(self.fields),
            "message": self.message,
        }


def refused_message(sequence: int, at: datetime, headers: Mapping[str, str], body: bytes) -> RefusedMessage:
    """Read what is kept of a message."""
    told = headers.get(Header.REASON, "")
    matched = _REASON.match(told)
    reason, message = (matched["reason"], matched["message"]) if matched else ("", told)
    return RefusedMessage(
        id=sequence,
        at=at,
        subject=headers.get(Header.SUBJECT, ""),
        reason=reason,
        message=message,
        fields=fields_in(message),
        digest=headers.get(Header.SHA256, ""),
        body=body,
    )


def fields_in(message: str) -> tuple[str, ...]:
    """The fields that a refusal names (`spec.region`), in order, each once."""
    found = (match["field"] for match in _FIELDS.finditer(message))
    return tuple(dict.fromkeys(field for field in found if "." in field or "[" in field or field == "kind"))


def as_text(refused: RefusedMessage) -> str:
    """Its body to be read or edited: as YAML where it is a document, else as it is."""
    document = refused.document
    if isinstance(document, dict | list):
        return yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    return refused.body.decode("utf-8", "replace")


def replay_id(refused: RefusedMessage, body: bytes) -> str:
    """What tells the server that a replay is the same again: the message and what is sent in its place."""
    return f"rejected-{refused.id}-{hashlib.sha256(body).hexdigest()[:16]}"


def body_of(text: str) -> bytes:
    """What is sent of an edited text: JSON where it is one document. Raises ValueError when it is no YAML."""
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
    for start, taken in (("report", 2), ("queue", 2)):
        if start in words[:2]:
            rest = words[words.index(start) + taken :]
            if start == "queue":
                return "/".join(rest[-2:])
            if len(rest) >= 3:  # noqa: PLR2004 - kind, namespace, name
                place = "" if rest[1] == "_" else f"{rest[1]}/"
                return f"{rest[0]} {place}{'.'.join(rest[2:])}"
    return ""
