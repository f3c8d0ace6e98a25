"""Warnings of `--field-selector` and `--sort-by` for paths that no object has."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from gardenbus.cli.client.api import PAGE, ApiClient
from gardenbus.cli.manifests.files import as_mapping
from gardenbus.common.api.document import Document
from gardenbus.common.api.list_selectors import FieldPath, field_paths

SELECTOR = "--field-selector"
SORT = "--sort-by"


async def selector_warnings(
    api: ApiClient, tail: str, kind: str, selector: str, selected: Sequence[Document]
) -> list[str]:
    """Of the selector's paths those that neither the selected objects have nor the others, as far as one page shows."""
    paths = [path for path in field_paths(selector) if not _any_has(selected, path)]
    if not paths:
        return []
    page = await api.call(f"list.{tail}", {"limit": PAGE})
    return path_warnings(SELECTOR, kind, paths, page["items"])


def path_warnings(option: str, kind: str, paths: Iterable[FieldPath], documents: Sequence[Document]) -> list[str]:
    """A warning for each path that no document has, with what may be meant; none where there are no documents. Pure."""
    if not documents:
        return []
    return [_warning(option, kind, path, documents) for path in paths if not _any_has(documents, path)]


def _warning(option: str, kind: str, path: FieldPath, documents: Sequence[Document]) -> str:
    meant = _similar(documents, path)
    return f"{option}: no {kind} has the field {'.'.join(path)}{f'; did you mean {meant}?' if meant else ''}"


def _any_has(documents: Sequence[Document], path: FieldPath) -> bool:
    return any(path[-1] in _parent(document, path) for document in documents)


def _parent(document: Document, path: FieldPath) -> Document:
    for name in path[:-1]:
        document = as_mapping(document.get(name))
    return document


def _similar(documents: Sequence[Document], path: FieldPath) -> str:
    """The path with its first unknown part as the documents write it; "" where none is similar."""
    for length in range(1, len(path) + 1):
        if _any_has(documents, path[:length]):
            continue
        names = {name.lower(): name for each in documents for name in _parent(each, path[:length])}
        close = get_close_matches(path[length - 1].lower(), names, n=1)
        return ".".join((*path[: length - 1], names[close[0]], *path[length:])) if close else ""
    return ""
