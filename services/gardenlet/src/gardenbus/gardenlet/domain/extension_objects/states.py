"""State of extension objects, which a ShootState keeps in Gardener's form.

`spec.extensions` has an entry an object (kind, name, purpose, state, resources), `spec.resources` the objects that
these name (kind and name by `resourceRef`), whole.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import is_deleting, mappings, name_of, only_text

EXTENSIONS, RESOURCES = "extensions", "resources"


class NamedResource(NamedTuple):
    """An object in the shoot's namespace that an extension object names in its state."""

    api_version: str
    kind: str
    name: str


def state_entry(kind: str, live: Document) -> Document | None:
    """Entry of an object; None without state, and of one that is being deleted."""
    status = section(live, "status")
    state, resources = status.get("state"), status.get("resources")
    if is_deleting(live) or not (state or resources):
        return None
    entry: Document = {"kind": kind, "name": name_of(live)}
    if purpose := only_text(section(live, "spec").get("purpose")):
        entry["purpose"] = purpose
    return entry | ({"state": state} if state else {}) | ({"resources": resources} if resources else {})


def entry_of(entries: Iterable[Document], kind: str, name: str, purpose: str = "") -> Document | None:
    """The entry of an object."""
    wanted = (kind, name, purpose)
    return next(
        (each for each in entries if (each.get("kind"), each.get("name"), each.get("purpose") or "") == wanted), None
    )


def sorted_entries(entries: Iterable[Document]) -> list[Document]:
    """Entries in the order of a ShootState: the same text each time."""
    return sorted(entries, key=lambda each: tuple(str(each.get(field) or "") for field in ("kind", "name", "purpose")))


def named_resources(entry: Document) -> Sequence[NamedResource]:
    """The objects that an entry, or a status, names."""
    references = [section(each, "resourceRef") for each in mappings(entry.get("resources"))]
    return [
        NamedResource(*(only_text(each.get(field)) for field in ("apiVersion", "kind", "name")))
        for each in references
        if each.get("name")
    ]


def without_server_fields(live: Document) -> Document:
    """An object as it can be created elsewhere."""
    metadata = section(live, "metadata")
    kept = {field: metadata[field] for field in ("name", "labels", "annotations") if metadata.get(field)}
    return {**{field: value for field, value in live.items() if field != "status"}, "metadata": kept}
