"""Lists of mappings inside of documents that may hold anything."""

from collections.abc import Mapping
from typing import Any, cast

from gardenbus.common.resources.document import Document


def mappings(document: Mapping[str, Any], field: str) -> list[Document]:
    """The mappings in the list below a field; what is no mapping is left out, and so is all that is no list."""
    value: Any = document.get(field)
    if not isinstance(value, list | tuple):
        return []
    return [cast("Document", each) for each in cast("list[Any]", value) if isinstance(each, dict)]
