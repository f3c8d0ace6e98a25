"""Rows as the page shows them: texts of bounded length, Events, and objects of other kinds. Pure."""

from sys import intern
from typing import Any, TypeVar

import msgspec

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings
from gardenbus.common.api.garden.rows import ShootRow, TableRow, metadata_fields, text
from gardenbus.common.api.keys import ObjectKey

LONGEST_TEXT = 400
"""Maximum length of a text in a row; the object's page shows all of it."""

LONGEST_MESSAGE = 1_000
"""Maximum length of an Event's message."""

_TEXTS = frozenset({"description", "message", "reason", "trouble"})

_SHARED = (
    "namespace",
    "provider",
    "region",
    "purpose",
    "seed",
    "actual_seed",
    "operation",
    "state",
    "description",
    "conditions",
    "scheduler",
)

RowT = TypeVar("RowT", bound=TableRow)


class OtherRow(TableRow, frozen=True):
    """An object of a kind that only the search and an object's page show."""

    kind: str
    owner: str = ""
    """`<kind>/<name>` of its controller, in the same namespace."""


def shortened(row: RowT) -> RowT:
    """Return a row whose texts are cut to LONGEST_TEXT."""
    long = {name: value for name in _TEXTS if len(value := getattr(row, name, "")) > LONGEST_TEXT}
    return msgspec.structs.replace(row, **{name: value[:LONGEST_TEXT] for name, value in long.items()}) if long else row


def share_texts(row: ShootRow) -> None:
    """Have equal texts of different rows be one object: most of what a row holds is the same in thousands of them."""
    for name in _SHARED:
        msgspec.structs.force_setattr(row, name, intern(getattr(row, name)))


def other_row(key: ObjectKey, document: Document) -> OtherRow:
    """Return the row of an object of any other kind; without its version, which would change all the time."""
    fields: dict[str, Any] = metadata_fields(document) | {"name": key.name, "namespace": key.namespace, "version": 0}
    owners = mappings(section(document, "metadata").get("ownerReferences"))
    owner = next((f"{text(each.get('kind')).lower()}/{text(each.get('name'))}" for each in owners), "")
    return OtherRow(**fields, kind=text(document.get("kind")) or key.kind, owner=owner)


def event_row(event: Document) -> Document:
    """Return the displayed fields of an Event; `at` is its last occurrence."""
    about = section(event, "involvedObject")
    return {
        "id": str(section(event, "metadata").get("name") or ""),
        "kind": str(about.get("kind") or "").lower(),
        "namespace": str(about.get("namespace") or ""),
        "name": str(about.get("name") or ""),
        "type": str(event.get("type") or "Normal"),
        "reason": str(event.get("reason") or ""),
        "message": str(event.get("message") or "")[:LONGEST_MESSAGE],
        "by": str(event.get("reportingComponent") or section(event, "source").get("component") or ""),
        "count": event.get("count") if isinstance(event.get("count"), int) else 1,
        "at": str(event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp") or ""),
    }
