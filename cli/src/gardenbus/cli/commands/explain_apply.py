"""`explain apply`: what admission would make of manifests, plug-in by plug-in."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

from gardenbus.cli.client.api import ApiClient, ApiResponse, api_error
from gardenbus.cli.commands.apply import manifests_of, placed, show_warnings
from gardenbus.cli.manifests.files import as_mapping, chunks, title
from gardenbus.cli.output.console import counted, new_table, show_lines, show_rows
from gardenbus.common.api.document import Document
from gardenbus.common.errors import Unavailable

COLUMNS = ("PLUG-IN", "OUTCOME", "WHAT")
_SHOWN = 60
"""Characters of a value in the table; `-o json` has all."""


def manifests(paths: Sequence[Path], namespace: str | None) -> Sequence[Document]:
    """The manifests of files and folders, in the order of `apply`. Raises BadRequest."""
    return [placed(each, namespace) for each in manifests_of(paths)]


async def explain_apply(api: ApiClient, documents: Sequence[Document]) -> list[ApiResponse]:
    """Request what an apply would do. Raises Unavailable."""
    responses: list[ApiResponse] = []
    for chunk in chunks(documents):
        responses += await api.explain_apply(chunk)
    for response in responses:
        if response.error.get("code") == Unavailable.code:
            raise api_error(response.error)
    return responses


def explanations(documents: Sequence[Document], responses: Sequence[ApiResponse]) -> list[Document]:
    """The output of `-o json`: one an object, its outcome `refused` where it would not be written."""
    return [_explained(document, response) for document, response in zip(documents, responses, strict=True)]


def _explained(document: Document, response: ApiResponse) -> Document:
    metadata = as_mapping(document.get("metadata"))
    named = {"kind": document.get("kind"), "namespace": metadata.get("namespace"), "name": metadata.get("name")}
    outcome = {"outcome": response.outcome if response.ok else "refused"}
    error = {} if response.ok else {"error": response.error}
    return {
        **{name: value for name, value in named.items() if value},
        **outcome,
        **error,
        "plugins": response.admission,
    }


def show_explanations(documents: Sequence[Document], responses: Sequence[ApiResponse]) -> None:
    """Print what became of each manifest, and the plug-ins that did something with it."""
    show_warnings(responses)
    for index, (document, response) in enumerate(zip(documents, responses, strict=True)):
        show_lines([*([""] if index else []), headline(document, response)])
        steps = [as_mapping(step) for step in response.admission]
        table = new_table(*COLUMNS[:-1], folded=COLUMNS[-1])
        for row in rows(steps):
            table.add_row(*map(Text, row))
        if table.row_count:
            show_rows(table)
        show_lines([*below(steps)])


def headline(document: Document, response: ApiResponse) -> str:
    """`Shoot garden-dev/apollo would be created`, or why not."""
    if response.ok:
        done = "left as it is" if response.outcome == "unchanged" else response.outcome
        return f"{title(document)} would be {done}"
    return f"{title(document)} would be rejected: {response.error.get('message')}"


def rows(steps: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, str, str]]:
    """Rows of the plug-ins that changed something, warn or reject, one for each thing."""
    for step in steps:
        plugin, outcome = str(step["plugin"]), str(step["outcome"])
        done = [
            *(("changed", _change(as_mapping(change))) for change in step.get("changes") or ()),
            *(("warned", str(warning)) for warning in step.get("warnings") or ()),
            *((outcome, str(message)) for message in step.get("messages") or ()),
        ]
        yield from ((plugin if index == 0 else "", *each) for index, each in enumerate(done))


def below(steps: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    """Lines on plug-ins that had nothing to do, or were not reached."""
    for outcome, what in (("passed", "had nothing to change or reject"), ("not reached", "would come after that")):
        names = [str(step["plugin"]) for step in steps if step["outcome"] == outcome]
        if names:
            yield f"{counted(len(names), 'more plug-in')} {what}: {', '.join(names)}"


def _change(change: Mapping[str, Any]) -> str:
    return f"{change['path']}: {_value(change, 'before')} → {_value(change, 'after')}"


def _value(change: Mapping[str, Any], which: str) -> str:
    if which not in change:
        return "(none)"
    text = json.dumps(change[which], ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
