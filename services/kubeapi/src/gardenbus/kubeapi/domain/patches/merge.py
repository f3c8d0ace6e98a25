"""JSON merge patches (RFC 7396)."""

from typing import Any, cast

from gardenbus.common.api.document import Document


def merged(present: Any, patch: Document) -> Document:
    """The document after a merge patch; nothing of it is changed in place."""
    found: Document = dict(cast("Document", present)) if isinstance(present, dict) else {}
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        elif isinstance(value, dict):
            found[name] = merged(found.get(name), cast("Document", value))
        else:
            found[name] = value
    return found
