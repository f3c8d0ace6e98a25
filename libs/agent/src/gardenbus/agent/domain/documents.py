"""Typed access to documents."""

from collections.abc import Mapping
from typing import Any, cast

from gardenbus.common.api.document import Document, section


def mappings(document: Mapping[str, Any], field: str) -> list[Document]:
    """Mappings in the list below a field; anything else is left out."""
    value: Any = document.get(field)
    if not isinstance(value, list | tuple):
        return []
    return [cast("Document", each) for each in cast("list[Any]", value) if isinstance(each, dict)]


def uid_of(document: Document) -> str:
    """The uid of an object; "" without one."""
    return str(section(document, "metadata").get("uid") or "")
