"""`describe`: all there is to know of one object, for people."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.text import Text

from gardenbus.cli import completions
from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.client.resource_args import get_object, parse_resources
from gardenbus.cli.client.summaries import summarize_shoot
from gardenbus.cli.commands.options import LandscapeOptions, Namespace, run_with_client
from gardenbus.cli.describe.related import related
from gardenbus.cli.fleet.sections import SHOWN_AS_TABLES, fleet_sections
from gardenbus.cli.manifests.files import as_mapping, title
from gardenbus.cli.output.columns import TableContext, age_of
from gardenbus.cli.output.console import console, exit_codes, show_lines, show_rows, yaml_text
from gardenbus.cli.output.printers import table_text
from gardenbus.cli.output.tables import objects_table
from gardenbus.cli.wait.conditions import failure_message
from gardenbus.common.api.document import Document
from gardenbus.common.errors import BadRequest

BAR_WIDTH = 20
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_SHOWN_SEPARATELY = frozenset({"conditions", "constraints", "lastOperation", "lastErrors"}) | SHOWN_AS_TABLES
DescribeWords = Annotated[
    list[str], typer.Argument(help="KIND NAME…, or KIND/NAME…", metavar="KIND NAME", autocompletion=completions.objects)
]


def describe(words: DescribeWords, *, namespace: Namespace = None, landscape: LandscapeOptions) -> None:
    """Show an object in full: spec, status, conditions, operation, what it has to do with, and its Events.

    Examples:
    gardenbus describe shoot apollo -n garden-dev
    gardenbus describe seed/aws-cork seed/aws-dublin
    """
    with exit_codes():
        wanted = parse_resources(words)
        if any(not one.names for one in wanted):
            raise BadRequest("describe takes objects: KIND NAME")

    async def work(api: ApiClient) -> None:
        is_first = True
        for one in wanted:
            for name in one.names:
                document = await get_object(api, one, name, namespace)
                metadata = document["metadata"]
                scope = metadata.get("namespace") or "_"
                about = f"involvedObject.kind={document['kind']},involvedObject.name={metadata['name']}"
                events = await api.items_if_readable(f"event.{scope}", {"fieldSelector": about})
                if not is_first:
                    show_lines(["", "─" * 40])
                is_first = False
                _show(document, await related(api, document), events)

    run_with_client(work, *landscape)


def _show(document: Document, relations: Sequence[str], events: Sequence[Document] | None) -> None:
    now = datetime.now(UTC)
    console.print(Text(title(document), style="bold"))
    show_lines(head_lines(document, now))
    for name, lines in sections_of(document, now):
        console.print(Text(f"\n{name}", style="bold"))
        show_lines([f"  {line}".rstrip() for line in lines])
    if relations:
        console.print(Text("\nRelated", style="bold"))
        show_lines([f"  {line}" for line in relations])
    console.print(Text("\nEvents", style="bold"))
    if events:
        show_rows(objects_table("event", events, TableContext(now, {}), wide=False))
    else:
        show_lines(["  not yours to read" if events is None else "  none in the last 24 hours"])


def head_lines(document: Document, now: datetime) -> list[str]:
    """Metadata, a line each. Pure."""
    metadata = as_mapping(document.get("metadata"))
    generation = f"{metadata.get('generation')}" if metadata.get("generation") is not None else ""
    observed = as_mapping(document.get("status")).get("observedGeneration")
    lines = [
        ("API version", str(document.get("apiVersion") or "")),
        ("Created", f"{metadata.get('creationTimestamp')} ({age_of(metadata.get('creationTimestamp'), now)})"),
        ("Deleting since", str(metadata.get("deletionTimestamp") or "")),
        ("Finalizers", ", ".join(map(str, metadata.get("finalizers") or ()))),
        ("Generation", f"{generation} (observed: {observed})" if generation and observed is not None else generation),
        ("Version", str(metadata.get("resourceVersion") or "")),
    ]
    shown = [f"  {word:<15} {value}" for word, value in lines if value]
    for word, name in (("Labels", "labels"), ("Annotations", "annotations")):
        pairs = [(key, value) for key, value in as_mapping(metadata.get(name)).items() if key != _LAST_APPLIED]
        shown += [f"  {word if not index else '':<15} {key}={value}" for index, (key, value) in enumerate(pairs)]
    return shown


def sections_of(document: Document, now: datetime) -> list[tuple[str, list[str]]]:
    """Sections below the head: (title, lines). Pure."""
    status = as_mapping(document.get("status"))
    sections: list[tuple[str, list[str]]] = []
    rest = {key: value for key, value in document.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    if rest:
        sections.append(("Spec", _yaml_lines(rest["spec"] if list(rest) == ["spec"] else rest)))
    if operation := as_mapping(status.get("lastOperation")):
        sections.append(("Operation", operation_lines(operation, now)))
    if document.get("kind") == "Shoot" and summarize_shoot(document).is_rejected:
        sections.append(("Waiting", ["for a seed; `gardenbus explain shoot` shows what each seed lacks"]))
    if failure := failure_message(document):
        sections.append(("Failed", [failure, "`gardenbus retry` lets its gardenlet try again"]))
    tables = ((name.capitalize(), condition_lines(status.get(name), now)) for name in ("conditions", "constraints"))
    sections += [(name, lines) for name, lines in tables if lines]
    sections += fleet_sections(status, now)
    if errors := status.get("lastErrors"):
        sections.append(("Last errors", _yaml_lines(errors)))
    if others := {key: value for key, value in status.items() if key not in _SHOWN_SEPARATELY}:
        sections.append(("Status", _yaml_lines(others)))
    return sections


def operation_lines(operation: Document, now: datetime) -> list[str]:
    """An operation with a bar for its progress. Pure."""
    progress = operation.get("progress")
    percent = min(100, max(0, progress)) if isinstance(progress, int) else 0
    filled = BAR_WIDTH * percent // 100
    age = age_of(operation.get("lastUpdateTime"), now)
    first = f"{operation.get('type')} {operation.get('state')}  {'█' * filled}{'░' * (BAR_WIDTH - filled)} {percent}%"
    return [f"{first}{f'  ({age} ago)' if age else ''}", *filter(None, [str(operation.get("description") or "")])]


def condition_lines(conditions: object, now: datetime) -> list[str]:
    """Conditions as a table. Pure."""
    if not isinstance(conditions, list) or not conditions:
        return []
    rows = [_condition_row(as_mapping(each), now) for each in conditions]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return table_text(["TYPE", "STATUS", "SINCE", "REASON", "MESSAGE"], rows).splitlines()


def _condition_row(condition: Document, now: datetime) -> list[str]:
    since = age_of(condition.get("lastTransitionTime"), now)
    named = (condition.get(name) or "" for name in ("reason", "message"))
    return [str(condition.get("type")), str(condition.get("status")), since, *(" ".join(str(x).split()) for x in named)]


def _yaml_lines(value: Any) -> list[str]:
    return yaml_text(value).splitlines()
